"""What the check of a cluster says of how full a Gateway is."""

import pytest

from integrations.clusters.base import Finding
from integrations.clusters.kubernetes.check_cluster import MOST_ROUTES, routes_of
from integrations.clusters.kubernetes.options import GatewayReference

GATEWAY = GatewayReference("models", "gateways")


def found(*attached: int) -> Finding:
    return routes_of(GATEWAY, {"status": {"listeners": [{"attachedRoutes": each} for each in attached]}})


@pytest.mark.parametrize(
    ("attached", "ok", "level"),
    [
        ((), True, "has 0 of 4,000 routes (0 %)"),
        ((3199,), True, "has 3,199 of 4,000 routes (79 %)"),
        ((1600, 1600), True, "is nearly full: it has 3,200 of 4,000 routes (80 %); assign namespaces to another"),
        ((4000,), False, "is full: it has 4,000 of 4,000 routes (100 %)"),
    ],
)
def test_a_gateway_is_nearly_full_from_80_percent_on(attached: tuple[int, ...], ok: bool, level: str) -> None:
    finding = found(*attached)
    assert MOST_ROUTES == 4000
    assert finding.ok == ok
    assert f"Gateway models in gateways {level}" in finding.message
    assert bool(finding.remedy) != ok


def test_a_gateway_without_a_status_has_no_routes() -> None:
    assert routes_of(GATEWAY, {}).message == "Gateway models in gateways has 0 of 4,000 routes (0 %)"
