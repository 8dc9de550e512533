"""Serving errors; `statuses` maps their kinds to HTTP and gRPC.

    ServingError              never raised itself
    |-- InvalidArgument       the request is wrong
    |-- Forbidden             restricted, and the header that opens it is missing, or not in this mode
    |   `-- NotAllowed        the operator allows it to no client
    |-- NotFound              no such model, version or path
    |-- Unavailable           not now: draining, request timeout
    |   `-- Overloaded            queue full
    |-- Unsupported           valid, but not offered here
    |-- Cancelled             the client gave the request up; it gets this where it still listens
    |-- BackendError          the model failed while it ran
    `-- ModelError            the model or its config cannot be loaded; at start and by a load request
        |-- NoRoom                not beside the loaded ones
        `-- NotInstalledError     not here: a library is missing
            `-- CodeNotAllowed        it is code, and the operator allows none

Messages name what was requested, what was found and what to do.
"""

# ruff: noqa: N818 - the names are the words of the protocol

import enum


class FailureReason(enum.Enum):
    """Why a request failed: the `reason` label of nv_inference_request_failure."""

    REJECTED = "REJECTED"
    CANCELED = "CANCELED"
    BACKEND = "BACKEND"
    OTHER = "OTHER"


class ErrorKind(enum.Enum):
    """What a protocol makes a status of."""

    INTERNAL = enum.auto()
    INVALID_ARGUMENT = enum.auto()
    FORBIDDEN = enum.auto()
    NOT_ALLOWED = enum.auto()
    NOT_FOUND = enum.auto()
    ALREADY_EXISTS = enum.auto()
    UNAVAILABLE = enum.auto()
    EXHAUSTED = enum.auto()
    TOO_MANY_REQUESTS = enum.auto()
    UNSUPPORTED = enum.auto()
    CANCELLED = enum.auto()
    UNKNOWN = enum.auto()


class ServingError(Exception):
    """Base of all errors that are reported to a client or the operator.

    Attributes:
        kind: of the class; a model may raise an error of another one.
        retry_after_s: when a client may try again, where the error sets it.
    """

    retry_after_s: int | None = None
    kind = ErrorKind.INTERNAL
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
    kind = ErrorKind.INVALID_ARGUMENT


class Forbidden(ServingError):
    kind = ErrorKind.FORBIDDEN


class NotAllowed(Forbidden):
    kind = ErrorKind.NOT_ALLOWED


class NotFound(ServingError):
    kind = ErrorKind.NOT_FOUND


class Unavailable(ServingError):
    kind = ErrorKind.UNAVAILABLE
    reason = FailureReason.REJECTED


class Overloaded(Unavailable):
    """Too many requests wait already."""

    retry_after_s = 1


class Unsupported(ServingError):
    kind = ErrorKind.UNSUPPORTED


class Cancelled(ServingError):
    kind = ErrorKind.CANCELLED
    reason = FailureReason.CANCELED


class BackendError(ServingError):
    reason = FailureReason.BACKEND


class ModelError(ServingError):
    """A model that cannot be served; the message says which and why."""


class NoRoom(ModelError):
    """A model does not fit beside the loaded ones; it may later."""

    kind = ErrorKind.UNAVAILABLE


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
