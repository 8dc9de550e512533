"""A request body as a JSON object; refused before it is parsed where it would take far more memory than its bytes."""

from typing import Any

import numpy as np
import orjson

from serving_runtime.errors import InvalidArgument

_MANY_BYTES = 1024 * 1024
_MAX_CONTAINERS = 1_000_000
"""Arrays and objects in one body: an empty array is two bytes in JSON, but over fifty as an object in memory."""

_BRACE, _CASE = np.uint8(ord("{")), np.uint8(ord("{") - ord("["))  # with that bit set, both are the one


def json_object(text: bytes | memoryview) -> dict[str, Any]:
    """Return the object; raises InvalidArgument for anything else."""
    if len(text) > _MANY_BYTES:
        text = bytes(text)
        _check_containers(text)
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the request is not valid JSON: {error}") from error
    if type(content) is not dict:
        raise InvalidArgument("the request must be a JSON object")
    return content


def _check_containers(text: bytes) -> None:
    """Raise InvalidArgument for a JSON text of too many arrays and objects."""
    found = np.frombuffer(text, np.uint8)
    if len(found) > _MANY_BYTES and np.count_nonzero(found | _CASE == _BRACE) > _MAX_CONTAINERS:
        raise InvalidArgument(f"the request's JSON has more than {_MAX_CONTAINERS} arrays and objects; send data flat")
