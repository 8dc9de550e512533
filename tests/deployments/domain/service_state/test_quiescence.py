"""When nothing of a service goes on any more."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deployments.domain.phases import ServicePhase
from deployments.domain.rollout import Portion
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from deployments.domain.service_state.quiescence import TickResult, is_settled
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


def result(*revisions: RevisionState, **changed: object) -> TickResult:
    state = ServiceState("default", "digits", live=True, canary=Portion(), revisions=revisions or (revision(),))
    quiet = TickResult(ServicePhase.READY, state, seen(), is_confirmed=True, is_waiting=False, is_unsettled=False)
    return replace(quiet, **changed)  # type: ignore[arg-type]


AUTOMATIC = Scaling(min_replicas=2, max_replicas=5)
FOLLOWS = revision(scaling=AUTOMATIC)


@pytest.mark.parametrize(
    ("found", "settled"),
    [
        pytest.param(result(), True, id="all replicas are ready and nothing is awaited"),
        pytest.param(result(is_confirmed=False), False, id="the gateway has not confirmed what is desired"),
        pytest.param(result(seen=None), False, id="the cluster could not be read"),
        pytest.param(result(is_waiting=True), False, id="it waits: an import, a refusal, an alias that means nothing"),
        pytest.param(result(is_unsettled=True), False, id="a participant has work: a rollout in progress, a recording"),
        pytest.param(result(phase=ServicePhase.DEGRADED), False, id="it is Degraded"),
        pytest.param(result(phase=ServicePhase.PENDING), False, id="it is Pending"),
        pytest.param(result(seen=seen(1)), False, id="one of two replicas is ready"),
        pytest.param(result(seen=seen(phase=ReplicaPhase.STARTING)), False, id="no replica is ready"),
        pytest.param(
            result(revision(), revision(2, Role.RETIRING, retire_at=NOW)), False, id="an old revision is kept warm"
        ),
        pytest.param(
            result(revision(), revision(2, Role.FAILED, stopped_at=NOW)), True, id="a failed revision runs no more"
        ),
        pytest.param(result(FOLLOWS), False, id="nobody but the reconciler follows its load"),
        pytest.param(
            result(FOLLOWS, seen=seen(scaling=ObservedScaling(2))), True, id="the cluster's autoscaler follows its load"
        ),
        pytest.param(
            result(FOLLOWS, seen=seen(scaling=ObservedScaling(2, problem="no metrics"))),
            False,
            id="the cluster's autoscaler does not see the load",
        ),
        pytest.param(
            result(replace(FOLLOWS, replicas=3), seen=seen(3, scaling=ObservedScaling(3))),
            False,
            id="a rollout left more replicas than the least",
        ),
        pytest.param(
            result(phase=ServicePhase.STOPPED, seen=seen(0)), True, id="it is stopped, and nothing of it runs any more"
        ),
        pytest.param(
            result(phase=ServicePhase.STOPPED, seen=seen(0), is_waiting=True),
            False,
            id="it is stopped, and replicas drain",
        ),
    ],
)
def test_a_service_is_settled_where(found: TickResult, *, settled: bool) -> None:
    assert is_settled(found) is settled
