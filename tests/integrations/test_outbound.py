import ipaddress

import pytest

from common.errors import Unavailable
from integrations.outbound import post


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::a00:1]",
        "[2002:a00:1::]",
        "0.0.0.0",
        "224.0.0.1",
        "2130706433",
    ],
)
def test_addresses_that_are_not_public_are_refused(host: str) -> None:
    with pytest.raises(Unavailable, match="not a public address"):
        post(f"http://{host}:9/", b"", {}, allowed=(), timeout_s=1)


def test_an_allowed_network_is_tried_and_the_failure_told() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        post("http://127.0.0.1:1/", b"", {}, allowed=(ipaddress.ip_network("127.0.0.0/8"),), timeout_s=5)


def test_a_name_that_is_nowhere_is_told() -> None:
    with pytest.raises(Unavailable, match="cannot be resolved"):
        post("http://nowhere.invalid/", b"", {}, allowed=(), timeout_s=5)
