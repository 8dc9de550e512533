"""Errors between the server and a worker: Triton's codes, and the runtime's errors."""

from typing import Any

from serving_runtime.common.errors import BackendError, ServingError

CODES = {
    "UNKNOWN": (400, "UNKNOWN"),
    "INTERNAL": (500, "INTERNAL"),
    "NOT_FOUND": (404, "NOT_FOUND"),
    "INVALID_ARG": (400, "INVALID_ARGUMENT"),
    "UNAVAILABLE": (503, "UNAVAILABLE"),
    "UNSUPPORTED": (501, "UNIMPLEMENTED"),
    "ALREADY_EXISTS": (400, "ALREADY_EXISTS"),
    "CANCELLED": (400, "CANCELLED"),
}
"""Triton's error codes (TRITONSERVER_Error_Code) and their HTTP status and gRPC code."""


def error_from(failure: dict[str, Any]) -> ServingError:
    """Return the error that a model raised, with the status of its code."""
    error = BackendError(failure["message"])
    error.http_status, error.grpc_code = CODES[failure.get("code", "INTERNAL")]
    return error


def failure_from(error: ServingError) -> dict[str, Any]:
    """Return a request's error in the form for a calling model."""
    code = next((code for code, (_, grpc_code) in CODES.items() if grpc_code == error.grpc_code), "INTERNAL")
    return {"message": str(error), "code": code}
