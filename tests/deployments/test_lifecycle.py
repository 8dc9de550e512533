"""A service's phase follows from what the gateway does, not from what was asked of it."""

import pytest

from deployments.desired import RevisionState, Role, ServiceState
from deployments.lifecycle import Standing, standing
from deployments.phases import Code, Reason, ServicePhase
from integrations.clusters.base import Observed, ObservedReplica, ObservedRevision, ReplicaPhase

NAME = "digits-00001"


def service(*, live: bool = True) -> ServiceState:
    revision = RevisionState(NAME, Role.STABLE, "1", "file:///m", "sha256:aa", replicas=2)
    return ServiceState("default", "digits", live=live, canary_weight=0, revisions=(revision,))


def seen(ready: int, weight: int) -> Observed:
    replicas = tuple(ObservedReplica(f"{NAME}-{index}", ReplicaPhase.READY) for index in range(ready))
    return Observed("default", "digits", 1, (ObservedRevision(NAME, weight, replicas),))


PENDING, READY, PROGRESSING = ServicePhase.PENDING, ServicePhase.READY, ServicePhase.PROGRESSING


@pytest.mark.parametrize(
    ("live", "before", "ready", "weight", "phase", "reason"),
    [
        pytest.param(False, PENDING, 1, 0, PENDING, "not serving yet: 1 of 2 replicas of ", id="replicas start"),
        pytest.param(True, PENDING, 2, 0, PENDING, "the gateway sends 0 % of ", id="ready, but nothing gets to it yet"),
        pytest.param(True, PENDING, 2, 100, READY, f"{NAME} serves all traffic with 2 ", id="requests get through"),
        pytest.param(True, READY, 1, 100, ServicePhase.DEGRADED, "1 of 2 replicas of ", id="a replica is gone"),
        pytest.param(True, PROGRESSING, 2, 90, PROGRESSING, "the gateway sends 90 % of ", id="traffic comes back"),
    ],
)
def test_standing(live: bool, before: ServicePhase, ready: int, weight: int, phase: ServicePhase, reason: str) -> None:
    found = standing(service(live=live), before, seen(ready, weight), None, "")

    assert found.phase is phase
    assert found.reason.startswith(reason)


def test_a_rollout_in_progress_says_why_it_waits() -> None:
    reason = Reason(Code.HOLDING, "held for another 3s")

    assert standing(service(), READY, seen(2, 90), reason, "") == Standing(PROGRESSING, "held for another 3s")


def test_an_unreadable_cluster_changes_no_phase() -> None:
    found = standing(service(), READY, None, None, "no answer")

    assert found == Standing(READY, "the cluster cannot be read: no answer")
