"""A repartition on its way: what is done to the node in each phase, and that it takes pods again at every end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidTransition
from placement.mig.layouts import layout_of
from placement.mig.manager_file import config_name, configuration
from placement.repartition.machine import (
    CUT_LIMIT,
    DRAIN_LIMIT,
    Phase,
    Seen,
    State,
    Wanted,
    abort,
    advance,
    approve,
    decline,
    outdate,
    wanted_of,
)

_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_PROPOSED = State(Phase.PROPOSED, _NOW, "fairlead-new", "all-1g.10gb")
_EMPTY = Seen(0, (), "all-1g.10gb", "success", is_cut=False)


def seen(pods: int = 0, config: str = "all-1g.10gb", state: str = "success", *, cut: bool = False) -> Seen:
    return Seen(pods, (), config, state, is_cut=cut)


def cutting() -> State:
    return advance(approve(_PROPOSED, _NOW), _EMPTY, _NOW)


def test_from_a_proposal_to_a_node_that_is_cut() -> None:
    assert wanted_of(_PROPOSED) is None
    state = approve(_PROPOSED, _NOW)
    assert wanted_of(state) == Wanted(cordoned=True, evicting=True)
    state = advance(state, seen(pods=2), _NOW)
    assert (state.phase, state.message) == (Phase.DRAINING, "waits for 2 GPU pods of services to leave the node")
    state = advance(state, seen(), _NOW)
    assert wanted_of(state) == Wanted(cordoned=True, evicting=True, config="fairlead-new")
    state = advance(state, seen(config="fairlead-new", state="pending"), _NOW)
    assert (state.phase, state.message) == (Phase.CUTTING, "MIG manager says pending")
    state = advance(state, seen(config="fairlead-new"), _NOW)
    assert state.message == "MIG manager says success; the node does not offer the slices yet"
    state = advance(state, seen(config="fairlead-new", cut=True), _NOW)
    assert (state.phase, wanted_of(state)) == (Phase.DONE, Wanted(cordoned=False))


def test_a_success_from_before_is_not_taken_for_this_one() -> None:
    assert advance(cutting(), seen(state="success", cut=True), _NOW).phase is Phase.CUTTING


@pytest.mark.parametrize(
    ("state", "look", "after", "phase"),
    [
        pytest.param(approve(_PROPOSED, _NOW), seen(pods=1), DRAIN_LIMIT + _MINUTE, Phase.ABORTED, id="never drained"),
        pytest.param(cutting(), seen(config="fairlead-new", state="failed"), _MINUTE, Phase.REVERTING, id="failed"),
        pytest.param(cutting(), seen(config="fairlead-new", state="pending"), CUT_LIMIT + _MINUTE, Phase.REVERTING,
                     id="never cut"),
        pytest.param(abort(cutting(), _NOW), seen(), _MINUTE, Phase.ABORTED, id="back to what it was"),
        pytest.param(abort(cutting(), _NOW), seen(state="failed"), _MINUTE, Phase.ABORTED, id="not even that"),
        pytest.param(abort(cutting(), _NOW), seen(state="pending"), CUT_LIMIT + _MINUTE, Phase.ABORTED, id="nor that"),
    ],
)  # fmt: skip
def test_what_goes_wrong(state: State, look: Seen, after: timedelta, phase: Phase) -> None:
    assert advance(state, look, _NOW + after).phase is phase


def test_a_pod_of_others_is_waited_for_and_named() -> None:
    state = advance(approve(_PROPOSED, _NOW), Seen(0, ("team/notebook",), "", "", is_cut=False), _NOW)
    told = "waits for the GPU pod team/notebook, which is none of a service's, to leave the node"
    assert (state.phase, state.message) == (Phase.DRAINING, told)


def test_nothing_is_cut_before_no_pod_can_come_and_the_file_has_reached_the_node() -> None:
    delay = timedelta(seconds=90)
    state = approve(_PROPOSED, _NOW)
    state = advance(state, replace(_EMPTY, cordoned=False, written=False, delay=delay), _NOW)
    assert (state.phase, state.message) == (Phase.DRAINING, "waits for the node to be cordoned")
    state = advance(state, replace(_EMPTY, delay=delay), _NOW + _MINUTE)
    assert state.message == "waits for the cut to reach MIG manager's file on the node"
    assert advance(state, replace(_EMPTY, delay=delay), _NOW + _MINUTE + delay).phase is Phase.CUTTING
    # Whoever writes the file anew meanwhile makes it wait once more.
    state = advance(state, replace(_EMPTY, written=False, delay=delay), _NOW + 2 * _MINUTE)
    assert advance(state, replace(_EMPTY, delay=delay), _NOW + 3 * _MINUTE).phase is Phase.DRAINING


def test_what_is_in_the_way_is_told_and_so_is_the_end_for_it() -> None:
    held = replace(seen(pods=1), held="the disruption budget does not allow it")
    state = advance(approve(_PROPOSED, _NOW), held, _NOW)
    assert state.message == (
        "waits for 1 GPU pod of services to leave the node (the disruption budget does not allow it)"
    )
    state = advance(state, held, _NOW + DRAIN_LIMIT + _MINUTE)
    assert state.message == (
        "waited 30 min in vain for 1 GPU pod of services to leave the node (the disruption budget does not allow it); "
        "nothing was cut, and the node takes pods again"
    )


@pytest.mark.parametrize("state", [approve(_PROPOSED, _NOW), cutting(), abort(cutting(), _NOW)])
def test_a_node_that_is_gone_is_waited_for_and_then_given_up(state: State) -> None:
    gone = advance(state, None, _NOW + _MINUTE)
    assert (gone.phase, gone.message) == (state.phase, "the node is gone; it may come back")
    assert advance(gone, None, _NOW + CUT_LIMIT + _MINUTE).phase is Phase.ABORTED


def test_a_proposal_that_the_node_is_no_longer_right_for_is_over() -> None:
    assert advance(_PROPOSED, None, _NOW + CUT_LIMIT + _MINUTE) is _PROPOSED
    state = outdate(_PROPOSED, "gpu-1 is cordoned", _NOW)
    assert (state.phase, state.phase.is_over, wanted_of(state)) == (Phase.OUTDATED, True, None)
    with pytest.raises(InvalidTransition, match="only one that is proposed becomes outdated"):
        outdate(cutting(), "", _NOW)


def test_an_abort_puts_back_what_was() -> None:
    assert abort(approve(_PROPOSED, _NOW), _NOW).phase is Phase.ABORTED
    reverting = abort(cutting(), _NOW)
    assert wanted_of(reverting) == Wanted(cordoned=True, config="all-1g.10gb")


def test_only_what_is_proposed_is_approved_or_declined_and_only_what_is_under_way_aborted() -> None:
    assert decline(_PROPOSED, _NOW).phase is Phase.DECLINED
    for action in (approve, decline):
        with pytest.raises(InvalidTransition, match="the repartition is Cutting; only one that is proposed"):
            action(cutting(), _NOW)
    with pytest.raises(InvalidTransition, match="there is nothing to abort"):
        abort(_PROPOSED, _NOW)


_LOOKS = st.builds(
    Seen,
    st.integers(0, 2),
    st.sampled_from([(), ("a/stranger",)]),
    st.sampled_from(["", "all-1g.10gb", "fairlead-new"]),
    st.sampled_from(["", "pending", "success", "failed"]),
    is_cut=st.booleans(),
)


@given(st.lists(st.tuples(_LOOKS, st.booleans())), st.booleans())
def test_whatever_happens_it_ends_with_a_node_that_takes_pods(looks: list[tuple[Seen, bool]], known: bool) -> None:
    state = approve(State(Phase.PROPOSED, _NOW, "fairlead-new", "all-1g.10gb" if known else ""), _NOW)
    now = _NOW
    for look, aborted in looks:
        now += 10 * _MINUTE
        if aborted and state.phase in (Phase.DRAINING, Phase.CUTTING):
            state = abort(state, now)
        state = advance(state, look, now)
        assert state.phase.is_over == (wanted_of(state) == Wanted(cordoned=False))
    for _ in range(3):
        now += DRAIN_LIMIT + CUT_LIMIT
        state = advance(state, seen(pods=1, state="pending"), now)
    assert state.phase.is_over


def test_the_file_for_mig_manager() -> None:
    cut = (layout_of({"3g.40gb": 1, "1g.10gb": 4}), layout_of({"1g.10gb": 7}), layout_of({"1g.10gb": 7}), ())
    name = config_name(cut)
    assert configuration(cut) == {
        "version": "v1",
        "mig-configs": {
            name: [
                {"devices": [0], "mig-enabled": True, "mig-devices": {"1g.10gb": 4, "3g.40gb": 1}},
                {"devices": [1, 2], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
                {"devices": [3], "mig-enabled": False, "mig-devices": {}},
            ]
        },
    }
    assert config_name(cut) == name
    assert config_name(cut[::-1]) != name
