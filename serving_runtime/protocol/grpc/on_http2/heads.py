"""gRPC request headers: method, deadline, compression, metadata. Parsed once for headers that repeat."""

import base64
import binascii
import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from serving_runtime import proto
from serving_runtime.common.errors import InvalidArgument, ServingError, Unsupported
from serving_runtime.protocol import caller_limit, callers
from serving_runtime.protocol.grpc.access import Sent
from serving_runtime.protocol.grpc.methods import DirectMethod
from serving_runtime.protocol.grpc.on_http2 import messages
from serving_runtime.protocol.grpc.policy import Answer
from serving_runtime.protocol.http2.headers.fields import Fields

_CONTENT_TYPE = re.compile(rb"application/grpc(\+.*|;.*)?")
_TIMEOUT = re.compile(rb"(\d{1,8})([HMSmun])")
_UNIT_S = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}

_OF_THE_PROTOCOL = frozenset(
    {b"te", b"content-type", b"content-length", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding"}
)


class Endpoint(NamedTuple):
    """A callable method.

    Attributes:
        kind: of its request messages.
        streams: whether it writes answers.
        direct: the method without a task, where it has one and no policy always applies to it.
    """

    kind: Any
    answer: Answer
    streams: bool
    direct: DirectMethod | None


class Head(NamedTuple):
    """Parsed headers of a call.

    Attributes:
        endpoint: None where `error` or `http_status` is set.
        http_status: the answer to a request that is no call.
        timeout_s: None without a deadline.
        coding: compression of the client's messages.
        accepts: compression that answers may have.
        fields: all headers.
        caller: whom the metadata name; empty without one.
        caller_limit: of the caller's unanswered requests; 0 for none.
    """

    endpoint: Endpoint | None = None
    error: ServingError | None = None
    http_status: int = 200
    timeout_s: float | None = None
    coding: str = "identity"
    accepts: frozenset[str] = frozenset()
    fields: Fields = ()
    caller: bytes = b""
    caller_limit: int = 0

    def of(self, fields: Fields) -> "Head":
        """Return the head of a call whose headers differ only in fields that are not read here."""
        return Head(
            self.endpoint, self.error, self.http_status, self.timeout_s, self.coding, self.accepts, fields,
            self.caller, self.caller_limit,
        )  # fmt: skip

    @property
    def metadata(self) -> Sent:
        """Return the call's metadata, made on demand."""
        return metadata(self.fields)


def interpret(fields: Fields, endpoints: Mapping[bytes, Endpoint]) -> Head:
    """Parse the headers of a request."""
    by_name = dict(fields)
    if by_name[b":method"] != b"POST":
        return Head(http_status=405)
    if _CONTENT_TYPE.fullmatch(by_name.get(b"content-type", b"")) is None:
        return Head(http_status=415)
    path = by_name[b":path"]
    try:
        endpoint = endpoints.get(path)
        if endpoint is None:
            raise Unsupported(f"there is no method {path[:200].decode('latin-1')}")
        metadata([field for field in fields if field[0][-4:] == b"-bin"])  # raises for invalid base64
        coding = by_name.get(b"grpc-encoding", b"identity").decode("latin-1")
        messages.check_coding(coding)
        return Head(
            endpoint=endpoint,
            timeout_s=timeout_s(by_name.get(b"grpc-timeout")),
            coding=coding,
            accepts=_accepted(by_name.get(b"grpc-accept-encoding", b"")),
            fields=fields,
            caller=callers.named(by_name),
            caller_limit=caller_limit.sent(by_name),
        )
    except ServingError as error:
        return Head(error=error)


@functools.lru_cache(maxsize=64)
def _accepted(value: bytes) -> frozenset[str]:
    return frozenset(value.decode("latin-1").replace(" ", "").split(","))


def timeout_s(value: bytes | None) -> float | None:
    """Return a grpc-timeout in seconds; raises InvalidArgument for an invalid one."""
    if value is None:
        return None
    found = _TIMEOUT.fullmatch(value)
    if found is None:
        raise InvalidArgument(f"grpc-timeout '{value[:40].decode('latin-1')}' is not up to 8 digits and one of HMSmun")
    return int(found[1]) * _UNIT_S[found[2]]


def metadata(fields: Fields) -> Sent:
    """Return a call's metadata, values of names that end in -bin as bytes; raises InvalidArgument for bad base64."""
    found: list[tuple[str, str | bytes]] = []
    for name, value in fields:
        if name in _OF_THE_PROTOCOL or name.startswith(b":"):
            continue
        key = name.decode("latin-1")
        if key.endswith("-bin"):
            found += [(key, _binary(key, part)) for part in value.split(b",")]
        else:
            found.append((key, _text(value)))
    return found


def _binary(key: str, value: bytes) -> bytes:
    value = value.strip()
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error as error:
        raise InvalidArgument(f"metadata '{key}' is not base64: {error}") from error


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def endpoint(service: str, method: str, answer: Answer, direct: DirectMethod | None, *, streams: bool) -> Endpoint:
    """Return the endpoint of a method of the .proto files."""
    return Endpoint(proto.request_type(service, method), answer, streams, direct)
