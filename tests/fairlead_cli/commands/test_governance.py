"""Rules that deleted models left, on the command line."""

from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]
KEPT = {
    "name": "digits",
    "requires_approval": True,
    "protected_aliases": ["blessed", "champion"],
    "team": "red",
    "owner": "blue",
    "kept_at": "2026-01-01T12:00:00Z",
    "kept_by": "ruth",
}


def test_kept_rules_are_listed(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /kept-rules", {"next": None, "results": [KEPT]})
    code, said, _ = fairlead("models", "kept-rules")
    assert code == 0
    assert said.splitlines()[1].split() == [
        "digits",
        "yes",
        "blessed,",
        "champion",
        "red",
        "blue",
        "2026-01-01T12:00:00Z",
    ]


def test_kept_rules_are_removed(fairlead: Fairlead, api: Any) -> None:
    api.on("DELETE /models/digits/kept-rules", None, status=204)
    assert fairlead("models", "remove-rules", "digits")[:2] == (0, "the next model digits begins without rules\n")
