"""`fairlead teams` and `fairlead members`."""

from collections.abc import Callable
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]


def test_a_team_is_shown_with_its_members_and_what_it_owns(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /teams/red", {"name": "red", "created_at": "t"})
    api.on("GET /teams/red/members", {"next": None, "results": [{"user": "ann", "role": "admin"}]})
    api.on("GET /teams/red/owned", {"next": None, "results": [{"kind": "model", "name": "digits"}]})

    code, said, _ = fairlead("teams", "show", "red")

    assert code == 0
    assert [line.split() for line in said.splitlines() if line][2:] == [
        ["USER", "ROLE"],
        ["ann", "admin"],
        ["OWNS", "NAME"],
        ["model", "digits"],
    ]


@pytest.mark.parametrize(
    ("line", "request_line", "document", "told"),
    [
        ("teams create red", "POST /teams", {"name": "red"}, "name"),
        ("teams give red model digits", "PUT /teams/red/models/digits", {}, "digits"),
        (
            "teams take red namespace prod",
            "DELETE /teams/red/namespaces/prod",
            None,
            "took namespace prod from team red",
        ),
        ("teams delete red", "DELETE /teams/red", None, "deleted team red"),
        ("members add red ann --role deployer", "PUT /teams/red/members/ann", {"role": "deployer"}, "ann"),
        (
            "teams set-demand team red --policy reviewed --approvals 2 --signed-in --digests",
            "PUT /teams/red/demand",
            {"policies": ["reviewed"], "approvals": 2, "signed_in": True, "digests": True},
            "reviewed",
        ),
        (
            "teams set-demand namespace prod",
            "PUT /namespaces/prod/demand",
            {"policies": [], "approvals": 0, "signed_in": False, "digests": False},
            "team red",
        ),
        ("members remove red ann", "DELETE /teams/red/members/ann", None, "removed ann from team red"),
    ],
)
def test_a_change_is_sent_and_told(
    fairlead: Fairlead, api: Any, line: str, request_line: str, document: Any, told: str
) -> None:
    answer = {"name": "digits", "kind": "model", "user": "ann", "role": "deployer", "created_at": "t"}
    answer |= {"of": "team red", "policies": ["reviewed"], "approvals": 2, "signed_in": True, "digests": False}
    api.on(request_line, answer, status=204 if request_line.startswith("DELETE") else 200)

    code, said, _ = fairlead(*line.split())

    assert (code, told in said) == (0, True)
    if document is not None:
        assert api.seen[0].document == document


def test_a_demand_is_shown(fairlead: Fairlead, api: Any) -> None:
    demand = {"of": "namespace prod", "policies": [], "approvals": 2, "signed_in": True, "digests": False}
    api.on("GET /namespaces/prod/demand", demand)

    code, said, _ = fairlead("teams", "demand", "namespace", "prod")

    assert code == 0
    shown = [line.split(maxsplit=1) for line in said.replace("signed in", "signed_in").splitlines()]
    assert shown == [
        ["of", "namespace prod"],
        ["policies", "any"],
        ["approvals", "2"],
        ["signed_in", "yes"],
        ["digests", "no"],
    ]


def test_a_role_that_there_is_not_is_a_wrong_command_line(fairlead: Fairlead) -> None:
    assert fairlead("members", "add", "red", "ann", "--role", "king")[0] == 2
