"""Own replicas of a service in a pool, through database and reconciler: load earns them, and quiet ends them."""

from typing import Any

from deployments.models import InferenceService, Revision
from deployments.services import service_restart
from events.models import Event
from tests.deployments._support.model_pools import file, pool, put
from tests.deployments._support.platform import Platform

MODEL = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
EARNS: dict[str, Any] = {"pool": "warm", "minReplicas": 0, "maxReplicas": 3, "scaleTarget": 4, "model": MODEL}


def own(platform: Platform) -> tuple[int, int]:
    """Return how many own replicas and how many in all the cluster is to have."""
    [desired] = platform.cluster.desired["default", "digits"].revisions
    return desired.own_replicas, desired.replicas


def test_load_earns_replicas_and_quiet_ends_them(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    put(platform, file("digits", EARNS))
    platform.until(lambda: platform.view().phase == "Ready")
    assert own(platform) == (0, 1)
    assert platform.view().reason.endswith(
        "in model pool default/warm, and has no replicas of its own until its load earns them"
    )

    platform.metrics.in_flight["digits-00001"] = 8
    platform.turn(seconds=10)
    platform.turn(seconds=10)
    assert own(platform) == (0, 1), "the load has not lasted"
    platform.until(lambda: own(platform)[0] > 0)
    assert own(platform) == (2, 1)
    [event] = Event.objects.filter(kind="RevisionScaled")
    assert event.message.startswith(
        "Raised own replicas of digits-00001 from 0 to 2: its load in the pool has filled 2.0"
    )
    platform.turn()
    assert platform.view().reason == "digits-00001 serves all traffic with 2 replicas of its own, not its pool"

    service_restart(namespace="default", name="digits", actor="alice", now=platform.clock())
    assert platform.view().revisions[0].replicas_to_restart == 2
    platform.until(lambda: platform.view().revisions[0].replicas_to_restart == 0)

    platform.metrics.in_flight["digits-00001"] = 0
    for _ in range(20):
        platform.turn(seconds=60)
    assert own(platform) == (0, 1)
    service = InferenceService.objects.get(name="digits")
    assert service.observed["digits-00001"]["restart_numbers"] == [0]
    assert platform.view().revisions[0].replicas_to_restart == 0, "replicas of the pool are not the service's"
    last = Event.objects.filter(kind="RevisionScaled").latest("seq").message
    assert last == "Lowered own replicas of digits-00001 from 1 to 0: no request came for 600 s, and the pool answers"
    assert Revision.objects.get(service__name="digits").replicas == 1
