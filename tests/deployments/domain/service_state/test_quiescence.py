"""When nothing of a service goes on any more."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deployments.domain.phases import ServicePhase
from deployments.domain.rollout import Portion
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from deployments.domain.service_state.quiescence import Turn, is_settled
from integrations.clusters.base import (
    Observed,
    ObservedReplica,
    ObservedRevision,
    ObservedScaling,
    ReplicaPhase,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def revision(number: int = 1, role: Role = Role.STABLE, **changed: object) -> RevisionState:
    state = RevisionState(
        name=f"digits-{number:05}",
        role=role,
        model_version=str(number),
        artifact_uri=f"file:///artifacts/{number}",
        artifact_digest=f"sha256:{number}",
        replicas=2,
        scaling=Scaling(min_replicas=2, max_replicas=2),
    )
    return replace(state, **changed)  # type: ignore[arg-type]


def seen(
    ready: int = 2, *, phase: ReplicaPhase = ReplicaPhase.READY, scaling: ObservedScaling | None = None
) -> Observed:
    replicas = tuple(ObservedReplica(f"digits-00001-{index}", phase) for index in range(ready))
    return Observed("default", "digits", 3, (ObservedRevision("digits-00001", 100, replicas, scaling=scaling),))


def turn(*revisions: RevisionState, **changed: object) -> Turn:
    state = ServiceState("default", "digits", live=True, canary=Portion(), revisions=revisions or (revision(),))
    quiet = Turn(
        ServicePhase.READY, state, seen(), is_confirmed=True, is_waiting=False, is_rolling=False, is_tapped=False
    )
    return replace(quiet, **changed)  # type: ignore[arg-type]


AUTOMATIC = Scaling(min_replicas=2, max_replicas=5)
FOLLOWS = revision(scaling=AUTOMATIC)


@pytest.mark.parametrize(
    ("found", "settled"),
    [
        pytest.param(turn(), True, id="all replicas are ready and nothing is awaited"),
        pytest.param(turn(is_confirmed=False), False, id="the gateway has not confirmed what is desired"),
        pytest.param(turn(seen=None), False, id="the cluster could not be read"),
        pytest.param(turn(is_waiting=True), False, id="it waits: an import, a refusal, an alias that means nothing"),
        pytest.param(turn(is_rolling=True), False, id="a rollout is in progress, paused ones included"),
        pytest.param(turn(is_tapped=True), False, id="its requests are recorded"),
        pytest.param(turn(phase=ServicePhase.DEGRADED), False, id="it is Degraded"),
        pytest.param(turn(phase=ServicePhase.PENDING), False, id="it is Pending"),
        pytest.param(turn(seen=seen(1)), False, id="one of two replicas is ready"),
        pytest.param(turn(seen=seen(phase=ReplicaPhase.STARTING)), False, id="no replica is ready"),
        pytest.param(
            turn(revision(), revision(2, Role.RETIRING, retire_at=NOW)), False, id="an old revision is kept warm"
        ),
        pytest.param(
            turn(revision(), revision(2, Role.FAILED, stopped_at=NOW)), True, id="a failed revision runs no more"
        ),
        pytest.param(turn(FOLLOWS), False, id="nobody but the reconciler follows its load"),
        pytest.param(
            turn(FOLLOWS, seen=seen(scaling=ObservedScaling(2))), True, id="the cluster's autoscaler follows its load"
        ),
        pytest.param(
            turn(FOLLOWS, seen=seen(scaling=ObservedScaling(2, problem="no metrics"))),
            False,
            id="the cluster's autoscaler does not see the load",
        ),
        pytest.param(
            turn(replace(FOLLOWS, replicas=3), seen=seen(3, scaling=ObservedScaling(3))),
            False,
            id="a rollout left more replicas than the least",
        ),
        pytest.param(
            turn(phase=ServicePhase.STOPPED, seen=seen(0)), True, id="it is stopped, and nothing of it runs any more"
        ),
        pytest.param(
            turn(phase=ServicePhase.STOPPED, seen=seen(0), is_waiting=True),
            False,
            id="it is stopped, and replicas drain",
        ),
    ],
)
def test_a_service_is_settled_where(found: Turn, *, settled: bool) -> None:
    assert is_settled(found) is settled
