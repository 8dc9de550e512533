"""A service whose model was measured, on a cluster with GPUs."""

from typing import Any

from clusters.models import Cluster
from deployments.models import InferenceService
from deployments.services import service_apply
from deployments.services.revisions.gpu_assignment import gpus_note
from integrations.clusters.base import NodeGpus, Nodes
from registry.models import ModelVersion
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.platform import Platform


def apply(platform: Platform, **limits: Any) -> InferenceService:
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": limits}
    platform.clock.go_on(1.0)
    return service_apply(document=document, namespace=None, name=None, actor="ops", now=platform.clock())[0]


def name_image(image: str, **file: Any) -> None:
    document = {**CLUSTER, "name": "local", "patches": [], **file} | ({"gpuRuntimeImage": image} if image else {})
    Cluster.objects.update(kind="kubernetes", document=document)


def see(platform: Platform, *nodes: NodeGpus, unknown: str = "") -> None:
    gpus_note(cluster_id=Cluster.objects.get().pk, nodes=Nodes(gpus=nodes, unknown=unknown), now=platform.clock())


def measure(memory_bytes: int) -> None:
    ModelVersion.objects.update(profile={"memory_bytes": memory_bytes})
