"""Which approvals count and who may give one; and the machine where it waits for them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.approver import Approver
from common.errors import InvalidTransition
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Code, Phase
from deployments.domain.policy import ApprovalRule, OnInconclusive, Policy, Step
from deployments.domain.rollout import (
    CanarySeen,
    Observation,
    Portion,
    RolloutState,
    advance,
    promote,
    reject,
    retry,
    start,
)
from deployments.domain.rollout.approvals import Approval, Author, Standing, Subject, Tally, judge, refusal, tally

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(hours=24)
TWO = ApprovalRule(approvals=2, expires=DAY)
HERE = Subject(1, 0, "sha256:a", "sha256:c", "sha256:p")
IDS = count(1)
READY = CanarySeen(replicas_wanted=1, replicas_ready=1)


def approval(user: str = "bob", ago: timedelta = timedelta(0), subject: Subject = HERE) -> Approval:
    return Approval(next(IDS), user, subject, NOW - ago)


@pytest.mark.parametrize(
    ("found", "standing", "why"),
    [
        pytest.param(approval(), Standing.COUNTS, "", id="for what is there: counts"),
        pytest.param(approval(ago=DAY - timedelta(seconds=1)), Standing.COUNTS, "", id="a second before it expires"),
        pytest.param(approval(ago=DAY), Standing.EXPIRED, "more than 24h ago", id="too old"),
        pytest.param(
            approval(subject=replace(HERE, attempt=2)), Standing.EXPIRED, "attempt 2, and this", id="another attempt"
        ),
        pytest.param(
            approval(subject=replace(HERE, step_index=None)), Standing.EXPIRED, "for the beginning", id="another step"
        ),
        pytest.param(
            approval(subject=replace(HERE, artifact_digest="sha256:b")),
            Standing.EXPIRED,
            "sha256:b, and sha256:a is rolled out now",
            id="another artifact",
        ),
        pytest.param(
            approval(subject=replace(HERE, configuration_digest="sha256:d")),
            Standing.EXPIRED,
            "configuration",
            id="another configuration",
        ),
        pytest.param(
            approval(subject=replace(HERE, policy_digest="sha256:q")), Standing.EXPIRED, "policy", id="another policy"
        ),
        pytest.param(
            replace(approval(), lost_right="bob may not approve here any more"),
            Standing.EXPIRED,
            "may not approve here any more",
            id="who gave it lost the right",
        ),
        pytest.param(replace(approval(), withdrawn_at=NOW), Standing.WITHDRAWN, "", id="withdrawn"),
        pytest.param(replace(approval(ago=10 * DAY), used_at=NOW), Standing.USED, "", id="a used one is not too old"),
    ],
)
def test_an_approval_counts_for_what_was_approved_and_says_why_not(
    found: Approval, standing: Standing, why: str
) -> None:
    judged = judge(found, HERE, NOW, rule=TWO)
    assert judged.standing is standing
    assert why in judged.why
    assert bool(judged.why) is (standing is Standing.EXPIRED)


def test_one_of_a_rollout_that_is_over_counts_no_more() -> None:
    assert judge(approval(), HERE, NOW, rule=None, over="Aborted").why == "the rollout is Aborted"


def test_two_approvals_of_one_person_are_one() -> None:
    once = tally(TWO, [approval("bob"), approval("bob")], HERE, NOW)
    assert (once.missing, once.message) == (1, "2 approvals, 1 of which bob gave")
    assert tally(TWO, [approval("bob"), approval("carol")], HERE, NOW).is_complete


def test_the_sentence_says_which_expired_and_is_silent_where_it_was_given_again() -> None:
    old = approval("bob", ago=DAY)
    assert "that of bob expired: it was given more than 24h ago" in tally(TWO, [old], HERE, NOW).message
    assert "expired" not in tally(TWO, [old, approval("bob")], HERE, NOW).message


@given(
    users=st.lists(st.sampled_from(["ann", "bob", "cy"]), max_size=8),
    ages=st.lists(st.integers(0, 48), min_size=8, max_size=8),
    attempts=st.lists(st.integers(1, 2), min_size=8, max_size=8),
    needed=st.integers(1, 3),
)
def test_it_is_complete_exactly_when_enough_people_have_one_that_counts(
    users: list[str], ages: list[int], attempts: list[int], needed: int
) -> None:
    made = [
        approval(user, timedelta(hours=age), replace(HERE, attempt=attempt))
        for user, age, attempt in zip(users, ages, attempts, strict=False)
    ]
    good = {each.user for each in made if each.subject == HERE and NOW - each.given_at < DAY}
    found = tally(ApprovalRule(needed, expires=DAY), made, HERE, NOW)
    assert found.is_complete is (len(good) >= needed)
    assert found.missing == max(0, needed - len(good))


@pytest.mark.parametrize(
    ("user", "four_eyes", "why"),
    [
        pytest.param("ann", True, "ann started the rollout", id="who started it"),
        pytest.param("max", True, "max registered digits version 2", id="who registered the version"),
        pytest.param("bob", True, "", id="somebody else"),
        pytest.param("an", True, "", id="another whose name begins alike"),
        pytest.param("ann", False, "", id="who started it, where two eyes are enough"),
        pytest.param("carol", False, "carol has approved already; the 2 have to be of different people", id="again"),
    ],
)
def test_who_may_not_approve_is_told_why(user: str, four_eyes: bool, why: str) -> None:
    rule = replace(TWO, four_eyes=four_eyes)
    authors = [Author("ann (token ci)", "started the rollout"), Author("max", "registered digits version 2")]
    judged = tally(rule, [approval("carol")], HERE, NOW).judged
    assert refusal(Approver(user), rule, authors, judged).startswith(why)
    assert bool(refusal(Approver(user), rule, authors, judged)) is bool(why)


# --- the machine

STEPS = Policy("asking", (Step(10, pause=True, approval=TWO), Step(50)))
BEGINNING = replace(STEPS, approval=ApprovalRule())


def seen(*users: str, rule: ApprovalRule = TWO, finding: Finding | None = None) -> Observation:
    approvals: Tally = tally(rule, [approval(user) for user in users], HERE, NOW)
    return Observation(canary=READY, confirmed=True, approvals=approvals, finding=finding)


def at_step(policy: Policy = STEPS) -> RolloutState:
    return replace(start(policy, NOW), phase=Phase.PROGRESSING, portion=Portion(10), confirmed_at=NOW)


def test_a_step_with_approvals_waits_and_goes_on_with_the_last_of_them() -> None:
    waiting = advance(at_step(), seen(), NOW)
    assert (waiting.phase, waiting.reason.code) == (Phase.PAUSED, Code.AWAITING_APPROVAL)
    assert waiting.reason.message.startswith("step 1 of 2 (10 %) waits for 2 approvals")
    one = advance(waiting, seen("bob"), NOW)
    assert (one.phase, one.step_index) == (Phase.PAUSED, 0)
    assert "1 of which bob gave" in one.reason.message
    both = advance(one, seen("bob", "carol"), NOW)
    assert (both.phase, both.step_index, both.portion.weight) == (Phase.PROGRESSING, 1, 50)


def test_a_rollout_that_needs_an_approval_moves_no_traffic_before() -> None:
    rule = ApprovalRule()
    waiting = advance(start(BEGINNING, NOW), seen(rule=rule), NOW)
    assert (waiting.phase, waiting.portion.weight, waiting.reason.code) == (Phase.PENDING, 0, Code.AWAITING_APPROVAL)
    begun = advance(waiting, seen("bob", rule=rule), NOW)
    assert (begun.phase, begun.portion.weight) == (Phase.PROGRESSING, 10)


def test_promote_is_no_way_around_approvals() -> None:
    waiting = advance(at_step(), seen(), NOW)
    with pytest.raises(InvalidTransition, match=r"goes on when it is approved.*fairlead rollouts approve"):
        promote(waiting)
    with pytest.raises(InvalidTransition, match="approved"):
        promote(advance(start(BEGINNING, NOW), seen(rule=ApprovalRule()), NOW))


@pytest.mark.parametrize("verdict", [Verdict.RUNNING, Verdict.INCONCLUSIVE, Verdict.SUCCESSFUL])
def test_approvals_of_an_undecided_step_are_its_promotion_as_a_single_persons_is(verdict: Verdict) -> None:
    paused = replace(at_step(), phase=Phase.PAUSED)
    finding = Finding(verdict, "40 requests", 40, 360)
    assert advance(paused, seen("bob", "carol", finding=finding), NOW).step_index == 1
    assert "40 requests" in advance(paused, seen("bob", finding=finding), NOW).reason.message


def test_a_failed_analysis_beats_all_approvals() -> None:
    bad = Finding(Verdict.FAILED, "30 of 40 failed", 40, 360)
    ended = advance(replace(at_step(), phase=Phase.PAUSED), seen("bob", "carol", finding=bad), NOW)
    assert (ended.phase, ended.portion.weight) == (Phase.DEGRADED, 0)


@pytest.mark.parametrize(
    "observation",
    [
        pytest.param(replace(seen("bob", "carol"), canary=None), id="the cluster cannot be read"),
        pytest.param(replace(seen("bob", "carol"), canary=CanarySeen(1, 0)), id="the canary is not ready"),
        pytest.param(replace(seen("bob", "carol"), confirmed=False), id="the gateway has not confirmed"),
        pytest.param(Observation(READY, confirmed=True), id="approvals were not looked at"),
    ],
)
def test_approvals_alone_do_not_move_a_rollout_on(observation: Observation) -> None:
    after = advance(replace(at_step(), phase=Phase.PAUSED), observation, NOW)
    assert (after.step_index, after.phase) == (0, Phase.PAUSED)


def test_a_rejection_aborts_with_the_reason_where_somebody_was_asked_and_nowhere_else() -> None:
    waiting = advance(at_step(), seen(), NOW)
    ended = reject(waiting, NOW, "bob", "the labels are wrong")
    assert (ended.phase, ended.reason.code, ended.portion.weight) == (Phase.ABORTED, Code.REJECTED, 0)
    assert "rejected by bob at step 1 of 2 (10 %): the labels are wrong" in ended.reason.message
    for state in (at_step(), ended, retry(ended, NOW)):
        with pytest.raises(InvalidTransition, match="waits for no approval"):
            reject(state, NOW, "bob", "no")


@given(people=st.sets(st.sampled_from("abcd")), policy=st.sampled_from([STEPS, BEGINNING]), ticks=st.integers(1, 6))
def test_no_traffic_beyond_a_point_whose_approvals_are_missing(people: set[str], policy: Policy, ticks: int) -> None:
    policy = replace(policy, on_inconclusive=OnInconclusive.PAUSE)
    state = start(policy, NOW)
    for _ in range(ticks):
        state = advance(state, seen(*people, rule=state.approval or TWO), NOW)
    if policy.approval is not None and not people:
        assert state.portion.weight == 0
    if len(people) < 2:
        assert state.portion.weight <= 10
