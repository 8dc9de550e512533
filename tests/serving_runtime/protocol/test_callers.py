"""Whose request it is: by the gateway's headers, else by the peer's address; values from elsewhere are not trusted."""

from typing import Any

import pytest

from integrations.clusters.local.envoy import access
from serving_runtime.protocol import callers
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import Request, Response
from serving_runtime.protocol.http.wire.reader import RequestReader

HEAD = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"


class Owner:
    def __init__(self) -> None:
        self.requests: list[Request] = []

    def on_request_begun(self) -> None: ...
    def on_body_awaited(self) -> None: ...
    def on_request(self, request: Request, keep_alive: bool) -> None:
        assert keep_alive
        self.requests.append(request)

    def on_refusal(self, response: Response) -> None:
        raise AssertionError(response)


def read(*heads: bytes) -> list[bytes]:
    """Return the callers of requests on one connection."""
    owner = Owner()
    reader = RequestReader(owner, HttpLimits(), None)
    reader.peer = b"peer"
    for head in heads:
        reader.feed(HEAD + head + b"\r\n")
    return [request.caller for request in owner.requests]


def test_the_names_are_those_that_the_gateway_sets() -> None:
    ours = {name.encode() for name in (access.CALLER_HEADER, access.ISSUER_HEADER, access.SUBJECT_HEADER)}
    assert ours == callers.HEADERS
    assert {name.encode() for name in access.OURS} >= callers.HEADERS, "the gateway removes a client's own"


def test_keys_tokens_and_addresses_are_never_the_same_caller() -> None:
    found = [
        callers.named({callers.CALLER: b"a"}),
        callers.named({callers.ISSUER: b"a", callers.SUBJECT: b"b"}),
        callers.named({callers.ISSUER: b"ab", callers.SUBJECT: b""}),
        callers.named({callers.ISSUER: b"a", callers.SUBJECT: b"bc"}),
        callers.named({callers.ISSUER: b"ab", callers.SUBJECT: b"c"}),
        callers.at(("10.0.0.1", 1)),
        callers.at(("10.0.0.2", 1)),
    ]
    assert len(set(found)) == len(found)
    assert found.count(b"") == 1, "an empty subject names nobody"


@pytest.mark.parametrize("value", [b"", b"x" * 513, b"a\x00b", b"a\tb", b"\x7f"])
@pytest.mark.parametrize("name", sorted(callers.HEADERS))
def test_a_value_that_is_too_long_or_has_control_characters_names_nobody(name: bytes, value: bytes) -> None:
    assert callers.named({callers.CALLER: b"a", callers.ISSUER: b"b", callers.SUBJECT: b"c", name: value}) == b""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("10.0.0.1", 1), ("10.0.0.1", 2), True),
        (("10.0.0.1", 1), ("::ffff:10.0.0.1", 1, 0, 0), True),
        (("::ffff:10.0.0.1", 1, 0, 0), ("::ffff:10.0.0.2", 1, 0, 0), False),
        (("2001:db8::1", 1, 0, 0), ("2001:db8::2", 1, 0, 0), True),
        (("2001:db8::1", 1, 0, 0), ("2001:db8:0:1::1", 1, 0, 0), False),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::2%eth1", 1, 0, 3), True),
        ("", None, True),
        ("/run/replica.sock", b"", True),
    ],
)
def test_an_address_is_a_caller_and_ipv6_by_its_network(one: Any, other: Any, same: bool) -> None:
    assert (callers.at(one) == callers.at(other)) == same


def test_a_request_without_headers_belongs_to_its_peer() -> None:
    assert read(b"", b"X-Other: 1\r\n", b"Fairlead-Caller: \r\n") == [b"peer"] * 3


def test_each_request_of_a_connection_has_its_own_caller() -> None:
    assert read(
        *[b"Fairlead-Caller: a\r\n"] * 3,
        *[b"fairlead-caller: b\r\n"] * 3,
        *[b""] * 2,
        b"fairlead-issuer: i\r\nfairlead-subject: s\r\n",
        b"Fairlead-Caller: a\r\n",
    ) == [*[b"key a"] * 3, *[b"key b"] * 3, *[b"peer"] * 2, b"token 1 is", b"key a"]
