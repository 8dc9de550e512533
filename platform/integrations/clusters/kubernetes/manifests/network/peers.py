"""Rules of NetworkPolicies from destinations: address ranges without metadata, namespaces, ports. Pure.

A range leaves out the addresses of `GUARDED`, such as a cloud's metadata, in all forms that IPv6 embeds them in.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import NODE_LOCAL_DNS, Destination
from serving_runtime.shared.egress import GUARDED, PRIVATE, Network

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: hosts without IPv6, as pods without IPv4 reach them through a gateway."""
_TRANSLATED = (IPv6Network("::ffff:0:0:0/96"), _NAT64)
"""Prefixes of 96 bits before an IPv4 address."""
_MAPPED = IPv6Network("::ffff:0:0/96")
"""Addresses within programs, which are none on a network; the API server refuses ranges of them."""
_6TO4 = IPv6Network("2002::/16")
_PUBLIC: tuple[Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("2000::/3"), _NAT64)


def _embedded(network: IPv4Network) -> Iterator[IPv6Network]:
    first, length = int(network.network_address), network.prefixlen
    for prefix in _TRANSLATED:
        yield IPv6Network((int(prefix.network_address) + first, 96 + length))
    yield IPv6Network((int(_6TO4.network_address) + (first << 80), 16 + length))


def _in_all_forms(networks: Iterable[Network]) -> Iterator[Network]:
    for network in networks:
        yield network
        if isinstance(network, IPv4Network):
            yield from _embedded(network)


CLOSED: tuple[Network, ...] = tuple(_in_all_forms(GUARDED))
"""Networks that no policy opens."""


def is_closed(network: Network) -> bool:
    """Return whether nothing of the network can be opened."""
    return any(_lies_within(network, closed) for closed in (*CLOSED, _MAPPED))


def namespaces(names: Iterable[str]) -> list[Manifest]:
    """Return the peers that are all pods of these namespaces."""
    return [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}} for name in names]


def ports(*numbers: int, protocols: Iterable[str] = ("TCP",)) -> list[Manifest]:
    """Return the ports of a rule."""
    return [{"port": number, "protocol": protocol} for number in numbers for protocol in protocols]


def rule(destination: Destination) -> Manifest:
    """Return the egress rule to a destination."""
    return {"to": _peers(destination), **({"ports": ports(*destination.ports)} if destination.ports else {})}


def dns_rule(destination: Destination) -> Manifest:
    """Return the egress rule to a server of DNS."""
    return {"to": _peers(destination), "ports": ports(*(destination.ports or (53,)), protocols=("UDP", "TCP"))}


def _peers(destination: Destination) -> list[Manifest]:
    if destination.is_internet:
        return [_block(network, (*CLOSED, *_in_all_forms(PRIVATE), _6TO4)) for network in _PUBLIC]
    if destination.network is not None:
        return [_block(destination.network, CLOSED if destination.network != NODE_LOCAL_DNS else ())]
    (peer,) = namespaces([destination.namespace])
    return [{**peer, **({"podSelector": {"matchLabels": dict(destination.pods)}} if destination.pods else {})}]


def _block(network: Network, left_out: Iterable[Network]) -> Manifest:
    """Return the peer of a range, without the ranges in it that are left out."""
    inside = [each for each in left_out if _lies_within(each, network)]
    of_4 = [each for each in inside if isinstance(each, IPv4Network)]
    of_6 = [each for each in inside if isinstance(each, IPv6Network)]
    excepted = [str(each) for each in (*collapse_addresses(of_4), *collapse_addresses(of_6))]
    return {"ipBlock": {"cidr": str(network), **({"except": excepted} if excepted else {})}}


def _lies_within(network: Network, other: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)
