"""HOST:PORT, and who sits on a port."""

import os
import re
import socket

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.up.addresses import Address, parse, parse_origin, require_apart, require_free


@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("[::1]:9", Address("::1", 9), "http://[::1]:9"),
        ("0.0.0.0:8080", Address("0.0.0.0", 8080), "http://127.0.0.1:8080"),
        ("[::]:8080", Address("::", 8080), "http://[::1]:8080"),
    ],
)
def test_parse(text: str, address: Address, url: str) -> None:
    assert parse(text) == address
    assert str(address) == text
    assert address.url == url


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("fairlead.example.org", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, is_loopback: bool) -> None:
    assert Address(host, 8090).is_loopback is is_loopback


@pytest.mark.parametrize(
    "text", ["8080", ":8080", "localhost", "localhost:", "localhost:http", "h:0", "h:65536", "h:-1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{text!r} is no address; expected HOST:PORT")):
        parse(text)


def test_a_free_port_is_left_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", probe.getsockname()[1])

    require_free(address, "--address")
    require_free(address, "--address")


def test_a_taken_port_names_its_process() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(CliError) as caught:
            require_free(Address("127.0.0.1", port), "--gateway-address")

    assert re.fullmatch(
        rf"port {port} on 127\.0\.0\.1 is taken by process {os.getpid()} \(.+\); "
        r"end that or choose another address with --gateway-address",
        str(caught.value),
    )


def test_an_address_of_another_machine_cannot_be_used() -> None:
    with pytest.raises(
        CliError, match=r"cannot listen on 192\.0\.2\.1:8080: .+; choose another address with --address"
    ):
        require_free(Address("192.0.2.1", 8080), "--address")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_one_port_for_pages_and_models_is_refused(host: str) -> None:
    with pytest.raises(CliError, match="are the same port; give the gateway another one"):
        require_apart(Address("127.0.0.1", 8080), Address(host, 8080))


@pytest.mark.parametrize("gateway", [Address("127.0.0.1", 8090), Address("127.0.0.2", 8080)], ids=str)
def test_two_addresses_are_apart(gateway: Address) -> None:
    require_apart(Address("127.0.0.1", 8080), gateway)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Models.example.com", "https://models.example.com"),
        ("https://models.example.com/", "https://models.example.com"),
        ("http://[::1]:8443", "http://[::1]:8443"),
    ],
)
def test_a_public_address_is_an_origin(text: str, origin: str) -> None:
    assert parse_origin(text) == origin


@pytest.mark.parametrize(
    "text",
    [
        "models.example.com",
        "ftp://h",
        "https://",
        "https://h:port",
        "https://h/fairlead",
        "https://me@h",
        "https://h?a",
    ],
)
def test_what_is_no_public_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{text!r} is no public address; expected https://HOST")):
        parse_origin(text)
