"""Request parameters that mean something to a scheduler, checked."""

from serving_runtime.errors import InvalidArgument
from serving_runtime.request import InferRequest

_MAX_DIGITS = 20
_MAX_ID = 2**64 - 1
_MAX_ID_CHARACTERS = 128


def unsigned(request: InferRequest, name: str) -> int:
    """Return an integer parameter, 0 where it is not given; raises InvalidArgument."""
    value = request.parameters.get(name, 0)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidArgument(f"request parameter '{name}' must be an unsigned integer, found {value!r}")
    return value


def flag(request: InferRequest, name: str) -> bool:
    """Return a boolean parameter, False where it is not given; raises InvalidArgument."""
    value = request.parameters.get(name, False)
    if not isinstance(value, bool):
        raise InvalidArgument(f"request parameter '{name}' must be true or false, found {value!r}")
    return value


def sequence_id(request: InferRequest) -> int | str:
    """Return the correlation id, 0 where none is given; raises InvalidArgument."""
    value = request.parameters.get("sequence_id", 0)
    if isinstance(value, str) and len(value) <= _MAX_ID_CHARACTERS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_ID:
        return value
    raise InvalidArgument(
        f"request parameter 'sequence_id' must be an unsigned 64-bit integer or a string of at most "
        f"{_MAX_ID_CHARACTERS} characters, found {value!r:.200}"
    )
