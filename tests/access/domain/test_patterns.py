"""Patterns of services, and that the gateway reads them as we do."""

import re

import pytest

from access.domain.patterns import parse_patterns
from common.errors import InvalidInput
from integrations.clusters.local.envoy.access import including

PATTERNS = ["*", "default/*", "default/dig*", "default/digits*", "default/digits", "default/digit", "default/digits-*"]
SERVICES = ["default/digits", "default/digits-2", "default/d", "default-2/digits", "prod/digits"]


def includes(pattern: str, service: str) -> bool:
    """Return whether `pattern` includes `service`, as the documentation says it."""
    return service.startswith(pattern[:-1]) if pattern.endswith("*") else service == pattern


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("service", SERVICES)
def test_the_gateway_includes_what_we_include(pattern: str, service: str) -> None:
    assert bool(re.fullmatch(including(service), pattern)) == includes(pattern, service)


def test_patterns_are_kept_once_in_their_order() -> None:
    assert parse_patterns(["b/x", "a/*", "b/x"]) == ("b/x", "a/*")


@pytest.mark.parametrize("pattern", ["", "digits", "default/", "*/digits", "De/x", "a/di*ts", "default/*/x", "**"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="expected `\\*`"):
        parse_patterns([pattern])


@pytest.mark.parametrize("count", [0, 51])
def test_none_and_too_many_are_refused(count: int) -> None:
    with pytest.raises(InvalidInput, match=f"has {count} patterns"):
        parse_patterns([f"default/s{number}" for number in range(count)])
