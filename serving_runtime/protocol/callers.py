"""Callers: who sent a request, for the turns of the queue (scheduler.fair_queue).

The gateway names callers in headers, which it removes from requests that arrive, so clients cannot set them there. A
request without them belongs to the address of its peer: behind a gateway, all such requests are one caller.
"""

import functools
import ipaddress
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

CALLER, ISSUER, SUBJECT = b"fairlead-caller", b"fairlead-issuer", b"fairlead-subject"
"""Header names in lower case: the name of a key; `iss` and `sub` of a token of another issuer."""

HEADERS = frozenset({CALLER, ISSUER, SUBJECT})

_VALUE = re.compile(rb"[\x20-\x7e\x80-\xff]{1,512}")
"""A value that counts; a request with another one belongs to its peer."""


CALL: ContextVar[bytes] = ContextVar("CALL", default=b"")
"""Caller of the gRPC call whose coroutine runs."""


def named(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the caller in a request's headers, names in lower case; empty where none is valid."""
    if any(name in headers and _VALUE.fullmatch(headers[name]) is None for name in HEADERS):
        return b""
    if CALLER in headers:
        return b"key " + headers[CALLER]
    if ISSUER in headers and SUBJECT in headers:
        return b"token %d %b%b" % (len(headers[ISSUER]), headers[ISSUER], headers[SUBJECT])
    return b""


def at(peername: Any) -> bytes:
    """Return the caller at the other end of a transport, from its `peername`; empty for a Unix socket."""
    return _of_address(peername[0]) if isinstance(peername, tuple) else b""


@functools.lru_cache(maxsize=4096)
def _of_address(text: str) -> bytes:
    """Return the caller at an IP address, for IPv6 its /64."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        return b"address " + (address.ipv4_mapped.packed if address.ipv4_mapped is not None else address.packed[:8])
    return b"address " + address.packed
