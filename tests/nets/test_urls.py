"""Addresses stay: each pattern with the name that `reverse` and templates use."""

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from tests.nets._support.recording import check


def addresses(resolver: URLResolver, before: str = "", namespace: str = "") -> Iterator[str]:
    """Yield pattern and name of each address below a resolver."""
    for each in resolver.url_patterns:
        pattern = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from addresses(each, pattern, f"{namespace}{each.namespace}:" if each.namespace else namespace)
        else:
            yield f"/{pattern} {_name(each, namespace)}{_defaults(each)}".rstrip()


def _name(address: URLPattern, namespace: str) -> str:
    return f"{namespace}{address.name}" if address.name else "(no name)"


def _defaults(address: URLPattern) -> str:
    return f" {sorted(address.default_args)}" if address.default_args else ""


def test_addresses_are_as_they_were() -> None:
    check("urls.txt", "the list of addresses", sorted(addresses(get_resolver())))
