"""Request parameters (Triton: parameters extension): those of the runtime, of models, and reserved names."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import NO_PARAMETERS, InferRequest
from serving_runtime.engine.requests.parameters import checked_flag, checked_unsigned

UNDERSTOOD = frozenset(
    {
        "binary_data_output",
        "priority",
        "sequence_end",
        "sequence_id",
        "sequence_start",
        "timeout",
        "triton_enable_empty_final_response",
    }
)

_CHECKS: Mapping[str, Callable[[str, Any], object]] = {
    "priority": checked_unsigned,
    "timeout": checked_unsigned,
    "sequence_start": checked_flag,
    "sequence_end": checked_flag,
    "triton_enable_empty_final_response": checked_flag,
}
"""Parameters whose value means the same to every model, also to one that does not use it."""

MAX_PARAMETERS = 4096

_RESERVED_PREFIXES = ("triton_", "sequence_")
_TYPES = frozenset({str, int, float, bool})


def checked(parameters: Any) -> Mapping[str, Any]:
    """Return a request's parameters; raises InvalidArgument for a reserved name or an invalid value.

    Triton: parameters extension; values are strings, numbers or booleans, `headers`, `triton_*` and `sequence_*` are
    reserved for the protocol.
    """
    if parameters is None:
        return NO_PARAMETERS
    if type(parameters) is not dict:
        raise InvalidArgument("the request's 'parameters' must be an object")
    if len(parameters) > MAX_PARAMETERS:
        raise InvalidArgument(f"the request has {len(parameters)} parameters; at most {MAX_PARAMETERS} are read")
    for name, value in parameters.items():
        if name in UNDERSTOOD:
            check = _CHECKS.get(name)
            if check is not None:
                check(name, value)
            continue
        if is_reserved(name):
            raise InvalidArgument(f"request parameter '{name}' has a reserved name; choose another one")
        if type(value) not in _TYPES:
            raise InvalidArgument(f"request parameter '{name}' must be a string, a number, true or false")
    return parameters


def is_reserved(name: str) -> bool:
    """Return whether a name belongs to the protocol, in use or reserved."""
    return name in UNDERSTOOD or name == "headers" or name.startswith(_RESERVED_PREFIXES)


class Forwarding:
    """Headers, or gRPC metadata, that are forwarded as request parameters (Triton: parameters extension).

    Args:
        secret: names in lower case that are never forwarded: those that open a restricted API are for the server alone.
    """

    def __init__(self, pattern: "re.Pattern[str]", secret: frozenset[bytes]) -> None:
        self._pattern = pattern
        self._secret = frozenset([name.decode("latin-1") for name in secret])

    def takes(self, name: str) -> bool:
        """Return whether the pattern matches a name that is neither reserved nor secret."""
        return self._pattern.search(name) is not None and not is_reserved(name) and name.lower() not in self._secret


def with_headers(request: InferRequest, headers: Sequence[tuple[bytes, bytes]], forwarding: Forwarding) -> InferRequest:
    """Return the request with its forwarded headers as parameters, over those of the same name."""
    named = [(name.decode("latin-1"), value) for name, value in headers]
    found = {name: value.decode("latin-1") for name, value in named if forwarding.takes(name)}
    return request._replace(parameters={**request.parameters, **found}) if found else request
