"""The module `triton_python_backend_utils`, which models written for Triton import; available in workers only.

Names and meanings are Triton's (Python backend). Unsupported names do not exist, so that a model that needs one fails
when it is loaded: docs/reference/python-models.md lists both.
"""

import json
from typing import Any

from serving_runtime.backends.python.worker.calls import InferenceRequest, is_model_ready
from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.messages import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    TRITONSERVER_RESPONSE_COMPLETE_FINAL,
    InferenceResponse,
    InferenceResponseSender,
    TritonError,
)
from serving_runtime.backends.python.worker.metrics import MetricFamily
from serving_runtime.backends.python.worker.model_config import ModelConfig
from serving_runtime.backends.python.worker.tensors import (
    NUMPY_TO_TRITON_TYPE,
    TRITON_STRING_TO_NUMPY,
    TRITON_TO_NUMPY_TYPE,
    Tensor,
    TritonModelException,
    deserialize_bytes_tensor,
    numpy_to_triton_type,
    serialize_byte_tensor,
    triton_string_to_numpy,
    triton_to_numpy_type,
)

__all__ = [
    "NUMPY_TO_TRITON_TYPE",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY",
    "TRITON_TO_NUMPY_TYPE",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "Logger",
    "MetricFamily",
    "ModelConfig",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "deserialize_bytes_tensor",
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "is_model_ready",
    "numpy_to_triton_type",
    "serialize_byte_tensor",
    "triton_string_to_numpy",
    "triton_to_numpy_type",
    "using_decoupled_model_transaction_policy",
]


def get_input_tensor_by_name(inference_request: Any, name: str) -> Tensor | None:
    return next((tensor for tensor in inference_request.inputs() if tensor.name() == name), None)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    return next((tensor for tensor in inference_response.output_tensors() if tensor.name() == name), None)


def get_input_config_by_name(model_config: Any, name: str) -> dict[str, Any] | None:
    return _named(model_config, "input", name)


def get_output_config_by_name(model_config: Any, name: str) -> dict[str, Any] | None:
    return _named(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config: Any) -> bool:
    return bool(_parsed(model_config).get("model_transaction_policy", {}).get("decoupled", False))


def _named(model_config: Any, kind: str, name: str) -> dict[str, Any] | None:
    return next((tensor for tensor in _parsed(model_config).get(kind, ()) if tensor["name"] == name), None)


def _parsed(model_config: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(model_config) if isinstance(model_config, str) else model_config
    return config


class Logger:
    """Lines for the server's log."""

    INFO, WARNING, ERROR, VERBOSE = "info", "warning", "error", "verbose"

    @staticmethod
    def log(message: str, level: str = INFO) -> None:
        current().send({"do": "log", "level": level, "text": str(message)})

    @staticmethod
    def log_info(message: str) -> None:
        Logger.log(message, Logger.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        Logger.log(message, Logger.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        Logger.log(message, Logger.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        Logger.log(message, Logger.VERBOSE)
