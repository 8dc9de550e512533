"""Serving errors, and the one table that maps them to HTTP and gRPC status codes.

    ServingError              never raised itself
    |-- InvalidArgument       the request is wrong; 400
    |-- Forbidden             restricted, and the header that opens it is missing, or not in this mode; 403
    |   `-- NotAllowed        the operator allows it to no client; 403
    |-- NotFound              no such model, version or path; 404
    |-- Unavailable           not now: draining, queue full, request timeout; 503
    |-- Unsupported           valid, but not offered here; 501
    |-- Cancelled             the client gave the request up, and is told so where it still listens; 400
    |-- BackendError          the model failed while it ran; 500
    `-- ModelError            the model or its config cannot be loaded; at start and by a load request
        `-- NotInstalledError     not here: a library is missing
            `-- CodeNotAllowed        it is code, and the operator allows none

Messages name what was asked, what was found and what to do. The numbers are Triton's error map
(INTERNAL 500, NOT_FOUND 404, UNAVAILABLE 503, UNSUPPORTED 501, all else 400).
"""

# ruff: noqa: N818 - the names are the words of the protocol

import enum


class FailureReason(enum.Enum):
    """Why a request failed: the `reason` label of nv_inference_request_failure."""

    REJECTED = "REJECTED"
    CANCELED = "CANCELED"
    BACKEND = "BACKEND"
    OTHER = "OTHER"


class ServingError(Exception):
    """Base of all errors that are reported to a client or the operator.

    Attributes:
        retry_after_s: when a client may try again, where the error sets it.
    """

    retry_after_s: int | None = None
    http_status = 500
    grpc_code = "INTERNAL"
    reason = FailureReason.OTHER

    @property
    def message(self) -> str:
        return str(self)

    def within(self, place: str) -> "ServingError":
        """Return the same error, with its place before the message."""
        failure = type(self).__new__(type(self), f"in {place}, {self}")  # whatever arguments a subclass takes
        failure.__dict__.update(self.__dict__)
        failure.__cause__ = self
        return failure


class InvalidArgument(ServingError):
    http_status = 400
    grpc_code = "INVALID_ARGUMENT"


class Forbidden(ServingError):
    http_status = 403
    grpc_code = "UNAVAILABLE"  # as in Triton


class NotAllowed(Forbidden):
    grpc_code = "PERMISSION_DENIED"


class NotFound(ServingError):
    http_status = 404
    grpc_code = "NOT_FOUND"


class Unavailable(ServingError):
    http_status = 503
    grpc_code = "UNAVAILABLE"
    reason = FailureReason.REJECTED


class Unsupported(ServingError):
    http_status = 501
    grpc_code = "UNIMPLEMENTED"


class Cancelled(ServingError):
    http_status = 400
    grpc_code = "CANCELLED"
    reason = FailureReason.CANCELED


class BackendError(ServingError):
    reason = FailureReason.BACKEND


class ModelError(ServingError):
    """A model that cannot be served; the message says which and why."""


class NotInstalledError(ModelError):
    """A model that cannot be served here: this installation lacks a library or does not allow what the model needs."""


class CodeNotAllowed(NotInstalledError):
    """A model that is code, where code is not allowed."""


def is_of_installation(error: BaseException) -> bool:
    """Return whether an error, or one that it was raised from, is `NotInstalledError`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NotInstalledError):
            return True
        cause = cause.__cause__
    return False
