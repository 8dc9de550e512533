"""Scheduling parameters of requests, checked."""

from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import InferRequest

_MAX_ID = 2**64 - 1
_MAX_ID_CHARACTERS = 128


def unsigned(request: InferRequest, name: str) -> int:
    """Return an integer parameter, 0 where it is absent; raises InvalidArgument."""
    return checked_unsigned(name, request.parameters.get(name, 0))


def flag(request: InferRequest, name: str) -> bool:
    """Return a boolean parameter, False where it is absent; raises InvalidArgument."""
    return checked_flag(name, request.parameters.get(name, False))


def checked_unsigned(name: str, value: Any) -> int:
    """Return the value of an integer parameter; raises InvalidArgument for any other, also for a number in a string."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidArgument(f"request parameter '{name}' must be an unsigned integer, found {value!r:.200}")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """Return the value of a boolean parameter; raises InvalidArgument for any other."""
    if not isinstance(value, bool):
        raise InvalidArgument(f"request parameter '{name}' must be true or false, found {value!r:.200}")
    return value


def sequence_id(request: InferRequest) -> int | str:
    """Return the correlation id, 0 where it is absent; raises InvalidArgument."""
    value = request.parameters.get("sequence_id", 0)
    if isinstance(value, str) and len(value) <= _MAX_ID_CHARACTERS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_ID:
        return value
    raise InvalidArgument(
        f"request parameter 'sequence_id' must be an unsigned 64-bit integer or a string of at most "
        f"{_MAX_ID_CHARACTERS} characters, found {value!r:.200}"
    )
