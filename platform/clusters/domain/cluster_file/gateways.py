"""`gateway`, `gateways` and `waker` of a cluster file: the Gateways that serve its namespaces. Pure."""

import re
from collections.abc import Collection
from functools import partial

from common.errors import InvalidInput
from common.files.document import Document
from common.identifiers import check_dns_label, check_web_address
from integrations.clusters.kubernetes.options import (
    WAKER_PORT,
    GatewayReference,
    NamespaceGateway,
    Options,
    WakerReference,
)

_URL = "where clients reach the gateway, such as https://models.example.com"
_NAMESPACES = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|[a-z0-9][a-z0-9-]{0,61}\*")


def parse_gateway(gateway: Document) -> GatewayReference:
    """Return the Gateway of `gateway`, or of an entry of `gateways`, whose other fields were read before."""
    result = GatewayReference(
        name=gateway.text("name"),
        namespace=gateway.text("namespace", check=check_dns_label),
        http_listener=gateway.text("httpListener", default=""),
        grpc_listener=gateway.text("grpcListener", default=""),
        proxy_namespace=gateway.text("proxyNamespace", default="", check=_check_optional_label),
    )
    gateway.refuse_unknown()
    return result


def parse_gateways(document: Document, main: GatewayReference) -> tuple[NamespaceGateway, ...]:
    """Return the further Gateways; raises InvalidInput with the name of the field at fault."""
    if "gateways" not in document.names:
        return ()
    found = document.each("gateways", _namespace_gateway)
    references = (main, *(each.reference for each in found))
    for what, named in (
        ("the Gateway", [f"{each.name} in {each.namespace}" for each in references]),
        ("the namespace", [namespace for each in found for namespace in each.namespaces]),
    ):
        twice = next((each for at, each in enumerate(named) if each in named[:at]), None)
        if twice is not None and document.is_sound():
            document.fault("gateways", f"names {what} {twice} twice; name it once")
    return found


def parse_waker(document: Document) -> WakerReference:
    """Return the waker's Service of `waker`."""
    result = WakerReference(
        name=document.text("name", check=check_dns_label),
        namespace=document.text("namespace", check=check_dns_label),
        port=document.integer("port", minimum=1, maximum=65535, default=WAKER_PORT),
    )
    document.refuse_unknown()
    return result


def gateway_url(gateway: Document) -> str:
    """Return where clients reach a Gateway, without a trailing slash."""
    return gateway.text("url", check=partial(check_web_address, expected=_URL))


def namespaces_of(gateway: Document, name: str) -> tuple[str, ...]:
    """Return a list of namespaces, or of beginnings of their names with `*`; empty where the field is missing."""
    value = gateway.raw(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and _NAMESPACES.fullmatch(each) for each in value):
        gateway.fault(name, "is no list of namespaces; write their names, or beginnings such as vision-*")
        return ()
    return tuple(dict.fromkeys(value))


def refuse_sudden_moves(before: Options, after: Options, namespaces: Collection[str]) -> None:
    """Raise InvalidInput where services would lose the address that clients use, while its Gateway is in the file.

    Args:
        namespaces: of the cluster's services.
    """
    for namespace in sorted(namespaces):
        its = before.of_namespace(namespace).gateway
        now = after.of_namespace(namespace)
        if its in after.all_gateways and its not in (now.gateway, *now.also):
            raise InvalidInput(
                f"services of {namespace} would be at Gateway {now.gateway.name} alone, but their clients use Gateway "
                f"{its.name}; name {namespace} as leaving of {its.name} until no client uses it any more",
                field="gateways",
            )


def _namespace_gateway(document: Document) -> NamespaceGateway:
    url, rate_limits = gateway_url(document), document.flag("rateLimits", default=False)
    namespaces, leaving = namespaces_of(document, "namespaces"), namespaces_of(document, "leaving")
    if not namespaces and not leaving and document.is_sound():
        document.fault("namespaces", "is missing; name the namespaces that the Gateway serves, such as [vision, ml-*]")
    return NamespaceGateway(parse_gateway(document), url, namespaces, leaving, rate_limits)


def _check_optional_label(text: str, *, field: str) -> str:
    return check_dns_label(text, field=field) if text else text
