"""`network` of a cluster file: what pods of models may connect to, where all else is denied. Pure."""

from collections.abc import Mapping
from ipaddress import ip_network

from common.errors import InvalidInput
from common.files.document import Document
from common.identifiers import check_dns_label
from integrations.clusters.kubernetes.manifests.network.peers import is_closed
from integrations.clusters.kubernetes.options import NODE_LOCAL_DNS, ClosedNetwork, Destination
from serving_runtime.shared.egress import Network

_INTERNET = "internet"
_KNOWN = ClosedNetwork()


def parse_network(document: Document, *, control_plane_url: str) -> ClosedNetwork:
    """Return the file's `network`; raises InvalidInput with the name of the field at fault."""
    result = ClosedNetwork(
        egress=document.each("egress", _destination) if "egress" in document.names else (),
        granted=document.each("granted", _destination) if "granted" in document.names else _KNOWN.granted,
        dns=document.each("dns", _dns) if "dns" in document.names else _KNOWN.dns,
    )
    document.refuse_unknown()
    if control_plane_url and not result.egress and document.is_sound():
        document.fault(
            "egress",
            f"names nothing, but pods fetch from {control_plane_url} (controlPlaneUrl); name what leads there, such as "
            "{namespace: fairlead, ports: [8080]} or {to: 192.0.2.0/24, ports: [443]}",
        )
    return result


def _dns(document: Document) -> Destination:
    found = _parsed(document)
    if found.is_internet:
        document.fault("to", "is internet; name the servers of DNS, by their network or namespace")
    return found


def _destination(document: Document) -> Destination:
    found = _parsed(document)
    if found.network == NODE_LOCAL_DNS:
        document.fault("to", f"is {NODE_LOCAL_DNS}, a node's server of DNS; it belongs to network.dns")
    return found


def _parsed(document: Document) -> Destination:
    to, namespace = document.text("to", default=""), document.text("namespace", default="")
    pods, ports = _labels(document, "pods"), _ports(document, "ports")
    document.refuse_unknown()
    if bool(to) == bool(namespace) or (pods and not namespace):
        raise InvalidInput(
            f"{document.prefix} has to say one of to ({_INTERNET} or a network such as 10.0.0.0/24) and namespace, "
            "with the labels of its pods as pods",
            field=document.prefix,
        )
    if namespace:
        document.attempt("", check_dns_label, namespace, field=document.path("namespace"))
        return Destination(namespace=namespace, pods=pods, ports=ports)
    if to == _INTERNET:
        return Destination(is_internet=True, ports=ports)
    return Destination(_network(to, document.path("to")), ports=ports)


def _network(text: str, field: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        expected = f"expected {_INTERNET} or a network such as 10.0.0.0/24"
        raise InvalidInput(f"{field}: {error}; {expected}", field=field) from error
    if is_closed(network) and network != NODE_LOCAL_DNS:
        raise InvalidInput(
            f"{field} is {network}, of addresses that are closed to models, such as a cloud's metadata; leave it out",
            field=field,
        )
    return network


def _labels(document: Document, name: str) -> Mapping[str, str]:
    value = document.raw(name, {})
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        document.fault(name, "is no object of texts; write the labels as a pod has them")
        return {}
    return dict(value)


def _ports(document: Document, name: str) -> tuple[int, ...]:
    value = document.raw(name, [])
    are_numbers = isinstance(value, list) and all(type(each) is int and 0 < each < 1 << 16 for each in value)
    if not are_numbers:
        document.fault(name, "is no list of ports from 1 to 65535")
        return ()
    return tuple(dict.fromkeys(value))
