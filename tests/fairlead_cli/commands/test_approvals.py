"""`fairlead rollouts approve`, `withdraw`, `reject`: what is sent, and what is said of it."""

from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]
APPROVALS = {
    "asked": {"point": "step 2", "is_awaited": True, "approvals": 2, "missing": 1, "four_eyes": True},
    "given": [
        {
            "user": "bob",
            "point": "step 2",
            "attempt": 1,
            "state": "counts",
            "why": "",
            "comment": "curves are fine",
            "given_at": "2026-01-01",
        },
        {
            "user": "carol",
            "point": "step 1",
            "attempt": 1,
            "state": "expired",
            "why": "it was given more than 24h ago",
            "comment": "",
            "given_at": "2026-01-01",
        },
    ],
}
ROLLOUT = {
    "id": 7,
    "service": "default/digits",
    "from_version": 1,
    "from_revision": "digits-00001",
    "to_version": 2,
    "to_revision": "digits-00002",
    "policy": "careful",
    "strategy": "canary",
    "phase": "Aborted",
    "reason": {"code": "Rejected", "message": "rejected by bob"},
    "analysis_runs": [],
    "approvals": APPROVALS,
    "started_at": "2026-01-01",
    "finished_at": None,
    "created_by": "ann",
}


def test_approve_says_what_is_there_and_what_is_missing(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", ROLLOUT)
    api.on("POST /rollouts/7/approvals", APPROVALS, status=201)

    code, said, _ = fairlead("rollouts", "approve", "7", "--comment", "curves are fine")

    assert code == 0
    assert "rollout 7 of default/digits: step 2 is approved by 1 of 2" in said
    assert "expired: it was given more than 24h ago" in said
    assert api.seen[-1].document == {"comment": "curves are fine"}


def test_withdraw_takes_it_back(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", ROLLOUT)
    api.on("DELETE /rollouts/7/approvals", APPROVALS)
    api.on("GET /rollouts/7/approvals", {"asked": None, "given": []})

    code, said, _ = fairlead("rollouts", "withdraw", "7")

    assert (code, "no approval is required now" in said) == (0, True)


def test_reject_sends_the_reason_and_wants_one(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", ROLLOUT)
    api.on("POST /rollouts/7/reject", ROLLOUT)

    code, said, _ = fairlead("rollouts", "reject", "7", "--comment", "wrong labels")

    assert (code, "rejected by bob" in said) == (0, True)
    assert api.seen[-1].document == {"comment": "wrong labels"}
    assert "curves are fine" in said
    assert fairlead("rollouts", "reject", "7")[0] == 2
