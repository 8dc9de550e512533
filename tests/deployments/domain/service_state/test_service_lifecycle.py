from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.phases import Code, Phase, Reason, ServicePhase
from deployments.domain.policy import Policy, Strategy, Then
from deployments.domain.rollout import Portion
from deployments.domain.service_file.pools import ModelPool
from deployments.domain.service_file.scaling import ScaleMetric, Scaling
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState, desired_of
from deployments.domain.service_state.service_lifecycle import comes_alive, is_confirmed, retire, roles_after, standing
from integrations.clusters.base import (
    Autoscaling,
    Observed,
    ObservedCompanion,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy("p", scale_down_delay=timedelta(seconds=30))


def _revision(number: int, role: Role, **more: object) -> RevisionState:
    state = RevisionState(f"digits-{number:05}", role, str(number), "file:///x", "sha256:0", replicas=1)
    return replace(state, **more)  # type: ignore[arg-type]


def _service(*revisions: RevisionState, live: bool = True, weight: int = 0) -> ServiceState:
    return ServiceState("default", "digits", live, Portion(weight), revisions)


STABLE = _revision(1, Role.STABLE)
CANARY = _revision(2, Role.CANARY)


def _seen(generation: int = 5, **weights: int) -> Observed:
    """Return an observation with one ready replica for each revision `rN=weight`."""
    ready = (ObservedReplica("replica", ReplicaPhase.READY),)
    revisions = tuple(ObservedRevision(f"digits-0000{name[1:]}", weight, ready) for name, weight in weights.items())
    return Observed("default", "digits", generation, revisions)


@pytest.mark.parametrize(
    ("outcome", "old", "new"),
    [
        pytest.param(Phase.PENDING, (Role.STABLE, None), (Role.CANARY, None), id="in progress: a canary"),
        pytest.param(
            Phase.HEALTHY,
            (Role.RETIRING, NOW + timedelta(seconds=30)),
            (Role.STABLE, None),
            id="healthy: new is stable, old is kept warm",
        ),
        pytest.param(Phase.DEGRADED, (Role.STABLE, None), (Role.FAILED, NOW), id="degraded: new has failed and goes"),
        pytest.param(Phase.ABORTED, (Role.STABLE, None), (Role.RETIRING, NOW), id="aborted: new goes"),
    ],
)
def test_roles_after_a_rollout(
    outcome: Phase, old: tuple[Role, datetime | None], new: tuple[Role, datetime | None]
) -> None:
    other = _revision(3, Role.RETIRING, retire_at=NOW)
    first, second, third = roles_after(
        (STABLE, CANARY, other), outcome=outcome, old=STABLE.name, new=CANARY.name, policy=POLICY, now=NOW
    )
    assert ((first.role, first.retire_at), (second.role, second.retire_at)) == (old, new)
    assert third == other


def test_a_shadow_that_ends_leaves_stable_in_its_place_and_is_kept_warm() -> None:
    policy = replace(POLICY, strategy=Strategy.SHADOW, then=Then.END)
    first, second = roles_after(
        (STABLE, CANARY), outcome=Phase.HEALTHY, old=STABLE.name, new=CANARY.name, policy=policy, now=NOW
    )
    assert first == STABLE
    assert (second.role, second.retire_at) == (Role.RETIRING, NOW + timedelta(seconds=30))


@pytest.mark.parametrize(
    ("wanted", "copied", "confirmed"),
    [
        pytest.param(20, 20, True, id="as wanted"),
        pytest.param(20, 0, False, id="not copied yet"),
        pytest.param(0, 20, False, id="still copied"),
        pytest.param(0, 0, True, id="nothing to copy"),
    ],
)
def test_a_share_of_copies_is_confirmed_by_the_gateway_too(wanted: int, copied: int, confirmed: bool) -> None:
    service = replace(_service(STABLE, CANARY), canary=Portion(mirror=wanted))
    seen = _seen(r1=100, r2=0)
    stable, canary = seen.revisions
    seen = replace(seen, revisions=(stable, replace(canary, mirror_percent=copied)))
    assert is_confirmed(desired_of(service, 5), seen) is confirmed


def test_what_is_still_copied_to_is_not_stopped() -> None:
    going = replace(CANARY, role=Role.RETIRING, retire_at=NOW)
    seen = _seen(r1=100, r2=0)
    stable, canary = seen.revisions
    copied = replace(seen, revisions=(stable, replace(canary, mirror_percent=5)))
    assert retire(_service(STABLE, going), copied, NOW).revisions[1].stopped_at is None
    assert retire(_service(STABLE, going), seen, NOW).revisions[1].stopped_at == NOW


def test_a_stopped_canary_runs_again_for_a_retry() -> None:
    stopped = _revision(2, Role.FAILED, stopped_at=NOW)
    _, canary = roles_after(
        (STABLE, stopped), outcome=Phase.PENDING, old=STABLE.name, new=stopped.name, policy=POLICY, now=NOW
    )
    assert (canary.role, canary.stopped_at) == (Role.CANARY, None)


@pytest.mark.parametrize(
    ("revision", "seen", "role", "stopped"),
    [
        pytest.param(
            _revision(2, Role.RETIRING, retire_at=NOW), _seen(r1=100, r2=0), Role.RETIRED, True, id="its time is over"
        ),
        pytest.param(
            _revision(2, Role.RETIRING, retire_at=NOW + timedelta(seconds=1)),
            _seen(r1=100, r2=0),
            Role.RETIRING,
            False,
            id="still kept warm",
        ),
        pytest.param(
            _revision(2, Role.FAILED, retire_at=NOW),
            _seen(r1=90, r2=10),
            Role.FAILED,
            False,
            id="the gateway still sends it requests",
        ),
        pytest.param(
            _revision(2, Role.FAILED, retire_at=NOW), _seen(r1=100, r2=0), Role.FAILED, True, id="failed stays failed"
        ),
        pytest.param(
            _revision(2, Role.RETIRING, retire_at=NOW),
            _seen(r1=100),
            Role.RETIRED,
            True,
            id="the cluster has it no more",
        ),
        pytest.param(_revision(2, Role.CANARY), _seen(r1=100, r2=0), Role.CANARY, False, id="a canary without traffic"),
    ],
)
def test_what_is_stopped(revision: RevisionState, seen: Observed, role: Role, stopped: bool) -> None:
    _, after = retire(_service(STABLE, revision), seen, NOW).revisions
    assert (after.role, after.stopped_at == NOW) == (role, stopped)


@pytest.mark.parametrize(
    ("seen", "confirmed"),
    [
        pytest.param(_seen(r1=75, r2=25), True, id="exactly as wished"),
        pytest.param(_seen(6, r1=75, r2=25), True, id="a newer generation that wishes the same"),
        pytest.param(_seen(4, r1=75, r2=25), False, id="right, but of an older wish"),
        pytest.param(_seen(r1=90, r2=10), False, id="the weights of before"),
        pytest.param(_seen(r1=75), False, id="the canary is missing"),
        pytest.param(_seen(r1=75, r2=20, r3=5), False, id="an older canary still gets requests"),
        pytest.param(_seen(r1=75, r2=25, r3=0), True, id="an older canary drains without requests"),
    ],
)
def test_what_the_gateway_has_confirmed(seen: Observed, confirmed: bool) -> None:
    assert is_confirmed(desired_of(_service(STABLE, CANARY, weight=25), 5), seen) is confirmed


def test_a_service_comes_alive_with_its_first_ready_replica_and_once() -> None:
    starting = Observed("default", "digits", 5, (ObservedRevision(STABLE.name, 0),))
    assert not comes_alive(_service(STABLE, live=False), starting)
    assert comes_alive(_service(STABLE, live=False), _seen(r1=0))
    assert not comes_alive(_service(STABLE), _seen(r1=100))


ROLLOUT = Reason(Code.HOLDING, "step 1 of 3 (10 %) is held for another 4s")


@pytest.mark.parametrize(
    ("service", "seen", "rollout", "phase", "sentence"),
    [
        pytest.param(_service(STABLE, live=False), _seen(), None, "Pending", "0 of 1 replicas", id="not live"),
        pytest.param(_service(STABLE), _seen(r1=100), None, "Ready", "digits-00001 serves all traffic", id="ready"),
        pytest.param(_service(STABLE), _seen(r1=100), ROLLOUT, "Progressing", ROLLOUT.message, id="in a rollout"),
        pytest.param(_service(STABLE), _seen(), ROLLOUT, "Degraded", "0 of 1 replicas of digits-00001", id="short"),
        pytest.param(
            _service(replace(STABLE, pool="default/warm")),
            _seen(r1=100),
            None,
            "Ready",
            "serves all traffic in model pool default/warm",
            id="pooled",
        ),
        pytest.param(
            _service(replace(STABLE, pool="default/warm")),
            _seen(),
            None,
            "Degraded",
            "no replica of model pool default/warm serves digits-00001",
            id="pool away",
        ),
        pytest.param(
            _service(replace(STABLE, model_pool=ModelPool(1))),
            _seen(r1=100),
            None,
            "Ready",
            "serves the services in this pool with 1 replica",
            id="pool",
        ),
        pytest.param(_service(STABLE), None, None, "Ready", "cannot be read: silent", id="unknown: the phase stands"),
    ],
)
def test_the_services_phase(
    service: ServiceState, seen: Observed | None, rollout: Reason | None, phase: str, sentence: str
) -> None:
    now = standing(service, ServicePhase.READY, seen, rollout, "silent")
    assert now.phase == phase
    assert sentence in now.reason


@given(
    st.booleans(),
    st.integers(0, 100),
    st.booleans(),
    st.lists(st.sampled_from([Role.RETIRING, Role.FAILED]), max_size=3),
)
def test_the_weights_of_a_live_service_sum_to_100(live: bool, weight: int, canary: bool, others: list[Role]) -> None:
    """With a canary as a rollout in progress has it; without one there is no canary's weight."""
    rest = (_revision(number, role) for number, role in enumerate(others, start=3))
    service = _service(STABLE, *([CANARY] if canary else []), *rest, live=live, weight=weight if canary else 0)
    weights = [revision.weight_percent for revision in desired_of(service, 1).revisions]
    assert sum(weights) == (100 if live else 0)
    assert all(each == 0 for each in weights[2 if canary else 1 :])


def test_a_stopped_revision_is_not_wished_for() -> None:
    service = _service(STABLE, _revision(2, Role.RETIRED, stopped_at=NOW))
    assert [revision.name for revision in desired_of(service, 1).revisions] == [STABLE.name]


@pytest.mark.parametrize(
    ("scaling", "wished"),
    [
        pytest.param(Scaling(2, 2), None, id="as many as the file says"),
        pytest.param(
            Scaling(1, 4, ScaleMetric.RPS, 20.0), Autoscaling(4, {"rps": 20.0}), id="as many as the load needs"
        ),
    ],
)
def test_a_clusters_own_autoscaler_is_told_how_far_it_may_go(scaling: Scaling, wished: Autoscaling | None) -> None:
    (revision,) = desired_of(_service(_revision(1, Role.STABLE, scaling=scaling)), 1).revisions
    assert revision.autoscaling == wished


def test_a_service_whose_explainer_is_missing_is_degraded_and_serves() -> None:
    ready, broken = (ObservedReplica("replica", phase) for phase in (ReplicaPhase.READY, ReplicaPhase.BACKING_OFF))
    explainer = ObservedCompanion((replace(broken, message="it ended with exit code 1"),))
    observed = ObservedRevision(STABLE.name, 100, (ready,), explainer=explainer)
    found = standing(_service(STABLE), ServicePhase.READY, Observed("default", "digits", 5, (observed,)), None, "")
    assert (found.phase, found.reason) == (
        ServicePhase.DEGRADED,
        "0 of 1 replicas of digits-00001 are ready (its explainer: it ended with exit code 1)",
    )
