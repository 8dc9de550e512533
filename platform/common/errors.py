"""Errors of the control plane. They know nothing of HTTP; `STATUS` is the one table that does.

    FairleadError
    ├── InvalidInput        the request is wrong; `field` names the part
    ├── NotAuthenticated    no token, or one that is unknown or expired
    ├── NotPermitted        a known caller without the scope
    ├── NotFound
    ├── Conflict            right in itself, but not in the present state
    │   ├── InvalidTransition   a rollout cannot do that in its phase
    │   ├── ContractBroken      a rollout would break clients; `details` says by what
    │   ├── DoesNotFit          the cluster has no room for it
    │   └── QuotaExceeded       the team has as much as its quota allows
    ├── TooLarge            more bytes than the limit
    ├── TooManyRequests     more requests than the limit; `retry_after_s` says when the next is allowed
    └── Unavailable         try again later; the only one worth a retry
        └── NoRoom              a disk is full

A message says what was requested, what was found and what to do, in one sentence.
"""

# ruff: noqa: N818 - the names are the words of the API

from collections.abc import Sequence


class FairleadError(Exception):
    """Base of all errors that are reported to callers.

    Args:
        message: one sentence for people.
        field: dotted name of the invalid part of the input, if any.
        details: sentences that elaborate the message, for lists.
    """

    code = "error"

    def __init__(self, message: str, *, field: str | None = None, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.details = tuple(details)

    @property
    def further(self) -> tuple[str, ...]:
        """Return the details that the message does not contain."""
        return tuple(each for each in self.details if each not in self.message)


class InvalidInput(FairleadError):
    code = "invalid_input"


class NotAuthenticated(FairleadError):
    code = "not_authenticated"


class NotPermitted(FairleadError):
    code = "not_permitted"


class NotFound(FairleadError):
    code = "not_found"


class Conflict(FairleadError):
    code = "conflict"


class InvalidTransition(Conflict):
    code = "invalid_transition"


class ContractBroken(Conflict):
    code = "contract_broken"


class DoesNotFit(Conflict):
    code = "does_not_fit"


class QuotaExceeded(Conflict):
    code = "quota_exceeded"


class TooLarge(FairleadError):
    code = "too_large"


class TooManyRequests(FairleadError):
    code = "throttled"

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = max(1, retry_after_s)


class Unavailable(FairleadError):
    code = "unavailable"


class NoRoom(Unavailable):
    code = "no_room"


STATUS: dict[type[FairleadError], int] = {
    InvalidInput: 400,
    NotAuthenticated: 401,
    NotPermitted: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    TooManyRequests: 429,
    Unavailable: 503,
    NoRoom: 507,
}


def status_of(error: FairleadError) -> int:
    """Return the HTTP status for `error`; 500 for a type that is not in the table."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 500)
