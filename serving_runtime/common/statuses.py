"""Statuses of errors: one table for HTTP and one for gRPC, by the kind of the error.

Every answer with an error, every log line and every recorded event has its status from here. The HTTP statuses are
Triton's error map (INTERNAL 500, NOT_FOUND 404, UNAVAILABLE 503, UNSUPPORTED 501, all else 400), 403, and 429.
"""

from serving_runtime.common.errors import ErrorKind, ServingError

HTTP_STATUS = {
    ErrorKind.INTERNAL: 500,
    ErrorKind.INVALID_ARGUMENT: 400,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_ALLOWED: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.ALREADY_EXISTS: 400,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.EXHAUSTED: 503,
    ErrorKind.TOO_MANY_REQUESTS: 429,
    ErrorKind.UNSUPPORTED: 501,
    ErrorKind.CANCELLED: 400,
    ErrorKind.UNKNOWN: 400,
}

GRPC_STATUS = {
    ErrorKind.INTERNAL: "INTERNAL",
    ErrorKind.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    ErrorKind.FORBIDDEN: "UNAVAILABLE",  # as in Triton
    ErrorKind.NOT_ALLOWED: "PERMISSION_DENIED",
    ErrorKind.NOT_FOUND: "NOT_FOUND",
    ErrorKind.ALREADY_EXISTS: "ALREADY_EXISTS",
    ErrorKind.UNAVAILABLE: "UNAVAILABLE",
    ErrorKind.EXHAUSTED: "RESOURCE_EXHAUSTED",
    ErrorKind.TOO_MANY_REQUESTS: "RESOURCE_EXHAUSTED",
    ErrorKind.UNSUPPORTED: "UNIMPLEMENTED",
    ErrorKind.CANCELLED: "CANCELLED",
    ErrorKind.UNKNOWN: "UNKNOWN",
}
"""Names of `grpc.StatusCode`."""


def http_status(error: ServingError) -> int:
    """Return the HTTP status of an error."""
    return HTTP_STATUS[error.kind]


def grpc_status(error: ServingError) -> str:
    """Return the name of the gRPC status of an error."""
    return GRPC_STATUS[error.kind]
