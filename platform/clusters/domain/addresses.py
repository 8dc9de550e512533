"""Addresses of services at the Gateways of their cluster, from its stored file. Pure."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from integrations.clusters.kubernetes.options import Addresses, gateways_of


def is_by_host(document: Mapping[str, Any] | None) -> bool:
    """Return whether services of the cluster answer only at hosts of their own; this machine has no file."""
    file = document or {}
    return bool(file.get("domain")) and file.get("addresses") == Addresses.HOSTS


def addresses_of(document: Mapping[str, Any] | None, gateway_url: str, namespace: str, name: str) -> tuple[str, ...]:
    """Return the URLs of a service, without a trailing slash: its own first, then those that it is leaving.

    A service by path and by host is at its path here. By host all its Gateways may have the same URL.

    Args:
        gateway_url: URL of the main Gateway.
        name: the service's, or that of its preview.
    """
    file = document or {}
    further = file.get("gateways", [])
    assigned = [(each.get("namespaces", ()), each.get("leaving", ())) for each in further]
    found = gateways_of(namespace, assigned, file.get("gateway", {}).get("leaving", ()))
    urls = [gateway_url if at is None else further[at]["url"].rstrip("/") for at in found]
    domain = str(file["domain"]) if is_by_host(file) else ""
    return tuple(dict.fromkeys(_address(url, domain, namespace, name) for url in urls))


def _address(gateway_url: str, domain: str, namespace: str, name: str) -> str:
    if not domain:
        return f"{gateway_url}/serving/{namespace}/{name}"
    gateway = urlsplit(gateway_url)
    port = "" if gateway.port is None else f":{gateway.port}"
    return f"{gateway.scheme}://{name}.{namespace}.{domain}{port}"


def with_kept_addresses(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a new file with `addresses` where it leaves them out.

    A file of a new cluster with a domain has hosts; one of a known cluster has what the cluster has.

    Args:
        before: the file of the known cluster; None for a new one.
    """
    if "addresses" in document:
        return document
    if before is None:
        return {**document, "addresses": Addresses.HOSTS.value} if document.get("domain") else document
    return {**document, "addresses": before["addresses"]} if "addresses" in before else document
