"""Limits of a service's requests: changed without a new revision, and left as they are by a file without them."""

from typing import Any

from clusters.models import Cluster
from deployments.models import InferenceService
from deployments.services import service_apply
from integrations.clusters.base import Limits
from tests.deployments._support.platform import Platform


def apply(platform: Platform, limits: Any = None) -> InferenceService:
    document = platform.document()
    if limits is not None:
        document["spec"]["limits"] = limits
    service, _ = service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    return service


def test_a_change_takes_no_new_revision_and_a_file_without_them_changes_nothing(platform: Platform) -> None:
    platform.live()
    revisions = apply(platform).revisions.count()
    limited = apply(platform, {"requestsPerSecond": 200, "perCaller": {"requestsPerSecond": 20}})
    assert limited.limits == {"requestsPerSecond": 200, "perCaller": {"requestsPerSecond": 20}}
    assert apply(platform).limits == limited.limits
    assert platform.view().limits == limited.limits
    platform.turn()
    (desired,) = platform.cluster.desired.values()
    assert desired.limits == Limits(200, 20)
    assert apply(platform, {}).limits == {}
    assert limited.revisions.count() == revisions
    platform.turn()
    (desired,) = platform.cluster.desired.values()
    assert desired.limits == Limits()


def test_kubernetes_takes_them_and_its_driver_says_where_the_gateway_cannot(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    Cluster.objects.update_or_create(name="local", defaults={"kind": "kubernetes", "created_at": platform.clock()})
    assert apply(platform, {"requestsPerSecond": 200}).limits
    assert apply(platform, {}).limits == {}
