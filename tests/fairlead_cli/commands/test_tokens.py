"""`fairlead tokens`."""

import json
from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]
TOKEN = {
    "id": 3,
    "name": "ci",
    "user": "ann",
    "hint": "flt_abcd",
    "scope": "write",
    "created_at": "t",
    "expires_at": "2026-02-01",
    "last_used_at": None,
    "revoked_at": None,
}


def test_a_new_token_is_shown_with_its_secret(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /tokens", {**TOKEN, "token": "flt_secret"}, status=201)

    code, said, told = fairlead("tokens", "create", "--name", "ci", "--scope", "write", "--expires-in", "12h")

    assert (code, said.splitlines()[0].split()) == (0, ["token", "flt_secret"])
    assert api.seen[0].document == {"name": "ci", "scope": "write", "expires_in": "12h"}
    assert "only time" in told


def test_the_answer_for_programs_is_json_alone(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /tokens", {**TOKEN, "token": "flt_secret"}, status=201)

    _, said, _ = fairlead("tokens", "create", "--name", "ci", "-o", "json")

    assert json.loads(said)["token"] == "flt_secret"


def test_tokens_are_listed(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /tokens", {"next": None, "results": [TOKEN]})

    _, said, _ = fairlead("tokens", "list")

    assert said.splitlines()[1].split() == ["3", "ci", "ann", "write", "flt_abcd", "2026-02-01", "-", "-"]


def test_a_token_is_revoked_by_its_id(fairlead: Fairlead, api: Any) -> None:
    api.on("DELETE /tokens/3", {}, status=204)

    assert fairlead("tokens", "revoke", "3") == (0, "revoked token 3\n", "")
