"""`fairlead users`."""

from collections.abc import Callable
from typing import Any

from tests.fairlead_cli._support.answers import USER, listed

Fairlead = Callable[..., tuple[int, str, str]]


def test_who_there_is_is_listed(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /users", listed({**USER, "active": False, "provider": "https://id.example"}))
    code, said, _ = fairlead("users", "list")
    assert code == 0
    for text in ("bob", "no", "red", "viewer", "https://id.example"):
        assert text in said


def test_a_user_is_switched_with_the_reason(fairlead: Fairlead, api: Any) -> None:
    api.on("PATCH /users/bob", USER)
    assert fairlead("users", "switch-off", "bob", "--reason", "has left")[0] == 0
    assert fairlead("users", "switch-on", "bob", "--reason", "is back")[0] == 0
    assert [each.document for each in api.seen] == [
        {"active": False, "reason": "has left"},
        {"active": True, "reason": "is back"},
    ]
    assert fairlead("users", "switch-off", "bob")[0] != 0, "without a reason"
