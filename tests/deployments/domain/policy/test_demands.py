"""Policies against what a team or a namespace demands."""

from typing import Any

import pytest

from accounts.domain.demand import Demand
from common.errors import InvalidInput
from deployments.domain.policy import parse_policy
from deployments.domain.policy.demands import most_approvals, unmet

RED = "team red"


def policy(name: str = "reviewed", **changed: Any) -> Any:
    return parse_policy({"name": name, "steps": [{"weight": 10, "hold": "1s"}], **changed}, name=None)


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 0),
        ({"approval": {}}, 1),
        ({"approval": {"approvals": 3}}, 3),
        ({"steps": [{"weight": 10, "pause": True}]}, 0),
        ({"steps": [{"weight": 10, "pause": {"approvals": 2}}, {"weight": 20, "pause": {"approvals": 1}}]}, 2),
    ],
)
def test_the_point_that_asks_for_the_most_approvals_counts(changed: dict[str, Any], count: int) -> None:
    assert most_approvals(policy(**changed)) == count


@pytest.mark.parametrize(
    ("demand", "meets"),
    [
        (Demand(RED), True),
        (Demand(RED, signed_in=True), True),
        (Demand(RED, ("careful", "reviewed")), True),
        (Demand(RED, ("careful",)), False),
        (Demand(RED, approvals=2), True),
        (Demand(RED, approvals=3), False),
        (Demand(RED, ("reviewed",), approvals=3), False),
    ],
)
def test_a_policy_meets_a_demand(demand: Demand, meets: bool) -> None:
    assert (unmet([Demand("namespace prod"), demand], policy(approval={"approvals": 2})) == "") is meets


def test_the_sentence_names_the_demand() -> None:
    assert unmet([Demand(RED, ("careful", "slow"))], policy()) == (
        "team red demands one of the policies careful, slow of its services, and this one is reviewed; name it in "
        "`spec.rollout.policy`"
    )
    assert unmet([Demand("namespace prod", approvals=2)], policy()) == (
        "namespace prod demands 2 approvals of a rollout, and this one is reviewed, which asks for none; name a policy "
        "with such an `approval` or `pause`"
    )
    assert unmet([Demand(RED, approvals=1)], None) == (
        "team red demands 1 approval of a rollout, and there is no policy; name a policy with such an `approval` or "
        "`pause`"
    )


@pytest.mark.parametrize(
    "demand",
    [
        Demand(RED, ("No Name",)),
        Demand(RED, ("twice", "twice")),
        Demand(RED, tuple(f"p{number}" for number in range(51))),
        Demand(RED, approvals=21),
        Demand(RED, approvals=-1),
    ],
)
def test_what_no_policy_can_meet_is_refused(demand: Demand) -> None:
    with pytest.raises(InvalidInput):
        demand.check()


def test_a_demand_in_words() -> None:
    assert str(Demand(RED)) == "nothing"
    assert str(Demand(RED, ("a",), 1)) == "the policy a; an approval of each rollout"
    assert str(Demand(RED, ("a", "b"), 2, signed_in=True)) == (
        "the policies a, b; 2 approvals of each rollout; approvers who signed in themselves"
    )
