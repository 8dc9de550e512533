"""What a call's headers say."""

from typing import Any

import pytest

from serving_runtime.common.errors import InvalidArgument, Unsupported
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head, interpret, timeout_s
from serving_runtime.protocol.grpc.on_http2.statuses import percent_encoded


async def nothing(_request: Any, _call: Any) -> None:
    """Return nothing."""


ENDPOINT = Endpoint(None, nothing, streams=False, direct=None)
CALL = {b":method": b"POST", b":scheme": b"http", b":path": b"/s/M", b"content-type": b"application/grpc"}


def head(**more: bytes) -> Head:
    fields = {**CALL, **{name.replace("_", "-").encode(): value for name, value in more.items()}}
    return interpret(tuple(fields.items()), {b"/s/M": ENDPOINT})


def test_a_call_is_understood() -> None:
    found = head(grpc_timeout=b"250m", grpc_encoding=b"gzip", grpc_accept_encoding=b"identity, gzip", x_id=b"7")
    assert found.endpoint is ENDPOINT
    assert (found.timeout_s, found.coding, found.accepts) == (0.25, "gzip", {"identity", "gzip"})
    assert found.metadata == [("x-id", "7")]


@pytest.mark.parametrize("content_type", [b"application/grpc", b"application/grpc+proto", b"application/grpc;v=1"])
def test_content_types_of_grpc(content_type: bytes) -> None:
    assert interpret(tuple({**CALL, b"content-type": content_type}.items()), {b"/s/M": ENDPOINT}).endpoint is ENDPOINT


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({b":method": b"GET"}, 405),
        ({b"content-type": b"application/json"}, 415),
        ({b"content-type": b"application/grpc-web"}, 415),
    ],
)
def test_what_is_no_call_gets_a_status_of_http(changed: dict[bytes, bytes], status: int) -> None:
    found = interpret(tuple({**CALL, **changed}.items()), {b"/s/M": ENDPOINT})
    assert (found.http_status, found.endpoint) == (status, None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"1H", 3600), (b"2M", 120), (b"3S", 3), (b"4m", 0.004), (b"5u", 5e-6), (b"99999999n", 0.099999999), (None, None)],
)
def test_deadlines_in_every_unit(value: bytes | None, seconds: float | None) -> None:
    assert timeout_s(value) == pytest.approx(seconds)


@pytest.mark.parametrize("value", [b"", b"1", b"S", b"-1S", b"123456789S", b"1.5S", b"1s"])
def test_what_is_no_deadline_is_refused(value: bytes) -> None:
    assert isinstance(head(grpc_timeout=value).error, InvalidArgument)


def test_what_is_not_offered_is_refused() -> None:
    assert isinstance(interpret(tuple({**CALL, b":path": b"/s/N"}.items()), {}).error, Unsupported)
    assert isinstance(head(grpc_encoding=b"snappy").error, Unsupported)


def test_binary_metadata_is_base64_with_or_without_padding_one_or_more() -> None:
    assert head(x_bin=b"AAEC").metadata == [("x-bin", b"\x00\x01\x02")]
    assert head(x_bin=b"AA==,AQ").metadata == [("x-bin", b"\x00"), ("x-bin", b"\x01")]
    assert isinstance(head(x_bin=b"!").error, InvalidArgument)


def test_messages_are_percent_encoded_and_cut_at_a_character() -> None:
    assert percent_encoded("100 % größer\n") == b"100 %25 gr%C3%B6%C3%9Fer%0A"
    long = percent_encoded("ö" * 5000)
    assert len(long) <= 4096
    assert long == b"%C3%B6" * (len(long) // 6)
