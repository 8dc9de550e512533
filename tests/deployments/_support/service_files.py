"""Service files."""

from typing import Any

FILE: dict[str, Any] = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "digits"},
    "spec": {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}}},
}
