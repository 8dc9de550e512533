"""Egress filter: which addresses a URL chosen by a user of the platform may lead to. Pure.

Webhooks of the control plane and the runtime's payload logger resolve the host, check its addresses here, and connect
to a checked one. A host with one refused address is refused as a whole.

        public                                  yes
        private, shared, unique local           where the operator allows a network that contains it
        loopback, link-local, metadata          where the operator allows a network that lies within `GUARDED`
"""

import ipaddress
from collections.abc import Iterable, Sequence

OTLP_URL = "http://localhost:4318/v1/traces"
"""Destination of traces where the operator names no collector (OpenTelemetry: OTLP/HTTP)."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

GUARDED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "::/127",  # unspecified and loopback
        "169.254.0.0/16",  # link-local: metadata of AWS, Azure, GCP, Oracle, OpenStack, DigitalOcean
        "fe80::/10",
        "168.63.129.16/32",  # Azure: WireServer
        "100.100.100.200/32",  # Alibaba
        "192.0.0.192/32",  # Oracle
        "fd00:ec2::/32",  # AWS: metadata, DNS, time, identities of pods
        "fd20:ce::254/128",  # GCP
        "fd00:c1::a9fe:a9fe/128",  # Oracle
        "fd00:42::42/128",  # Scaleway
    )
)
"""Networks that a wider allowed one does not include: their hosts trust any client that reaches them."""

PRIVATE: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
"""Private address ranges: RFC 1918, RFC 6598, RFC 4193."""

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# IPv6 prefixes whose last 32 bits are the packets' IPv4 destination.
_CARRIERS = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # SIIT
        "64:ff9b::/96",  # NAT64
    )
)


class EgressRefusedError(Exception):
    """A host has an address that is not allowed; the message names it, and the setting that allows it."""


def networks(text: str) -> tuple[Network, ...]:
    """Parse networks that are separated by commas; raises ValueError."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


def permitted(host: str, found: Iterable[str], allowed: Sequence[Network]) -> list[str]:
    """Return the addresses to connect to, each once.

    Args:
        host: the resolved name, for the message.
        found: its addresses, as `getaddrinfo` gives them.

    Raises:
        EgressRefusedError: one of them is not allowed.
    """
    addresses = [ipaddress.ip_address(text.split("%")[0]) for text in found]
    for address in addresses:
        real = carried(address)
        if not _may_be_reached(real, allowed):
            raise EgressRefusedError(
                f"{host!r} is at {real}, which is not a public address; an operator may allow its network by "
                "FAIRLEAD_EGRESS_ALLOWED_NETWORKS"
            )
    return [str(address) for address in dict.fromkeys(addresses)]


def carried(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or address


def _may_be_reached(address: Address, allowed: Sequence[Network]) -> bool:
    permits = [network for network in allowed if address in network]
    for guarded in GUARDED:
        if address in guarded:
            return any(_lies_within(network, guarded) for network in permits)
    return bool(permits) or _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False  # site-local fec0::/10 too, which `is_global` counts as public
    return address.is_global and not address.is_multicast


def _lies_within(network: Network, other: Network) -> bool:
    if isinstance(network, ipaddress.IPv4Network):
        return isinstance(other, ipaddress.IPv4Network) and network.subnet_of(other)
    return isinstance(other, ipaddress.IPv6Network) and network.subnet_of(other)
