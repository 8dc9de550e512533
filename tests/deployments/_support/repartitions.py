"""Repartitions of a node's GPUs, proposed and approved."""

from typing import Any

import pytest

from clusters.models import Cluster
from gpus.models import Repartition
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_approve, repartition_propose
from integrations.clusters.base import NodeGpus, Nodes
from tests.deployments._support.accelerators import name_image
from tests.deployments._support.platform import Platform
from tests.scenes import GPU_NODE


@pytest.fixture
def allowed(platform: Platform) -> Platform:
    """Give a platform with a service on a Kubernetes cluster whose file lets nodes be cut."""
    platform.version(1)
    platform.apply(policy=None)
    name_image("fairlead/serving-runtime:test-cuda", repartition={})
    platform.until(lambda: platform.view().phase == "Ready")
    return platform


def propose(platform: Platform, *nodes: NodeGpus, unknown: str = "", **order: Any) -> Repartition:
    return repartition_propose(
        cluster=Cluster.objects.get(),
        order=RepartitionOrder(**(order or {"demands": ("1 x 3g.40gb",)})),
        nodes=Nodes(gpus=nodes or (GPU_NODE,), unknown=unknown),
        actor="alice",
        now=platform.clock(),
    )


def approve(platform: Platform, row: Repartition, *nodes: NodeGpus, reason: str = "") -> Repartition:
    return repartition_approve(
        cluster="local",
        repartition_id=row.pk,
        nodes=Nodes(gpus=nodes or (GPU_NODE,), unknown=""),
        reason=reason,
        actor="bob",
        now=platform.clock(),
    )
