"""Where services of a cluster answer, and what a file that does not say it has."""

from typing import Any

import pytest

from clusters.domain.addresses import addresses_of, is_by_host, with_kept_addresses

GATEWAY = "https://models.example.com:8443"
PATH = f"{GATEWAY}/serving/vision/digits"
HOST = "https://digits.vision.models.example.com:8443"
DOMAIN = {"domain": "models.example.com"}


@pytest.mark.parametrize(
    ("file", "url"),
    [
        (None, PATH),
        ({}, PATH),
        (DOMAIN, PATH),
        ({**DOMAIN, "addresses": "paths"}, PATH),
        ({**DOMAIN, "addresses": "both"}, PATH),
        ({**DOMAIN, "addresses": "hosts"}, HOST),
    ],
)
def test_a_service_is_shown_at_its_path_but_where_it_has_only_a_host(file: dict[str, Any] | None, url: str) -> None:
    assert addresses_of(file, GATEWAY, "vision", "digits") == (url,)
    assert is_by_host(file) == (url == HOST)


def test_a_host_has_no_port_where_the_gateway_has_the_schemes_own() -> None:
    file = {**DOMAIN, "addresses": "hosts"}
    [url] = addresses_of(file, "http://a.b", "vision", "digits-preview")
    assert url == "http://digits-preview.vision.models.example.com"


def test_a_service_that_moves_has_the_address_of_its_gateway_and_those_that_it_leaves() -> None:
    further = [
        {"url": "https://a.test/", "namespaces": ["vision"]},
        {"url": "https://b.test:8443", "namespaces": ["speech"], "leaving": ["vis*"]},
    ]
    file: dict[str, Any] = {"gateway": {"leaving": ["vision"]}, "gateways": further}
    paths = ("https://a.test", "https://b.test:8443", GATEWAY)
    assert addresses_of(file, GATEWAY, "vision", "digits") == tuple(f"{url}/serving/vision/digits" for url in paths)
    assert addresses_of(file, GATEWAY, "default", "digits") == (f"{GATEWAY}/serving/default/digits",)
    hosts = ("https://digits.vision.models.example.com", HOST)
    assert addresses_of({**file, **DOMAIN, "addresses": "hosts"}, GATEWAY, "vision", "digits") == hosts, "each once"


def test_a_new_cluster_with_a_domain_has_hosts_and_a_known_one_what_it_has() -> None:
    hosts = {**DOMAIN, "addresses": "hosts"}
    assert with_kept_addresses(DOMAIN, None) == hosts
    assert with_kept_addresses({}, None) == {}
    assert with_kept_addresses({**DOMAIN, "addresses": "paths"}, None) == {**DOMAIN, "addresses": "paths"}
    assert with_kept_addresses(DOMAIN, DOMAIN) == DOMAIN, "made before there was a choice: both"
    assert with_kept_addresses(DOMAIN, hosts) == hosts
    assert with_kept_addresses({**DOMAIN, "addresses": "both"}, hosts) == {**DOMAIN, "addresses": "both"}
