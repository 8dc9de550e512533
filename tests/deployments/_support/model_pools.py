"""Model pools and services in them, applied as a client applies them."""

from typing import Any

from deployments.models import InferenceService, Revision
from deployments.services import service_apply
from tests.deployments._support.platform import Platform


def file(name: str, predictor: dict[str, Any], namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"predictor": predictor, **spec},
    }


def put(platform: Platform, document: dict[str, Any]) -> InferenceService:
    service, _ = service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    return service


def pool(platform: Platform, namespace: str = "default", memory: str = "1Gi", **fields: Any) -> InferenceService:
    return put(platform, file("warm", {"minReplicas": 2, "modelPool": {"memoryBudget": memory, **fields}}, namespace))


def pooled(platform: Platform, name: str = "digits", version: int = 1, where: str = "warm", **more: Any) -> Revision:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/digits/{version}"}
    service = put(platform, file(name, {"pool": where, "model": model}, **more))
    return Revision.objects.filter(service=service).latest("number")
