"""What the check of a cluster says of its Gateways, and what it reads for that."""

from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import Finding
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import GATEWAY as KIND
from integrations.clusters.kubernetes.check_cluster import MOST_ROUTES, check, routes_of
from integrations.clusters.kubernetes.options import GatewayReference, GpuAllocation, NamespaceGateway, Options
from tests.integrations._support.api_servers import Handler, api_server

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


def test_each_gateway_is_read_once(tmp_path: Path) -> None:
    ready = {"conditions": [{"type": "Programmed", "status": "True"}], "listeners": [{"attachedRoutes": 7}]}
    there = {KIND.path("gateways", "models"): {"status": ready}}
    read = []

    def answer(asked: Handler) -> None:
        if asked.command == "GET" and "/gateways/" in asked.path:
            read.append(asked.path)
        if asked.command == "POST":
            return asked.say(201, {"status": {"allowed": True}})
        if asked.path == "/version":
            return asked.say(200, {"gitVersion": "v1.35.0"})
        found = there.get(asked.path)
        return asked.say(404, {"message": "it is absent"}) if found is None else asked.say(200, found)

    further = GatewayReference("vision", "gateways")
    options = Options(GATEWAY, "image", "models", "/artifacts", gateways=(NamespaceGateway(further, "", ("vision",)),))
    with api_server(tmp_path, answer) as kubeconfig:
        api = Api(kubeconfig)
        findings = {each.about: each for each in check(api, options, ())}
        api.close()
    assert read == [KIND.path("gateways", name) for name in ("models", "vision")]
    assert findings["Gateway"].message == "Gateway models in gateways is programmed"
    assert "has 7 of 4,000 routes" in findings["routes of Gateway models in gateways"].message
    assert findings["Gateway vision in gateways"].message.startswith("there is no Gateway vision in gateways")
    assert "routes of Gateway vision in gateways" not in findings


_API, _CLASSES = "/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1/deviceclasses"


@pytest.mark.parametrize(
    ("there", "is_allowed", "sentence"),
    [
        ((), True, "does not serve resource.k8s.io/v1, which Kubernetes has from 1.34"),
        ((_API,), False, "not permitted: list resourceslices.resource.k8s.io"),
        ((_API, f"{_CLASSES}/gpu.nvidia.com"), True, "the cluster has no DeviceClass mig.nvidia.com"),
        ((_API, *(f"{_CLASSES}/{kind}.nvidia.com" for kind in ("gpu", "mig"))), True, "pods can claim GPUs"),
    ],
)
def test_what_claims_of_gpus_lack_is_one_sentence(
    there: tuple[str, ...], is_allowed: bool, sentence: str, tmp_path: Path
) -> None:
    def answer(asked: Handler) -> None:
        if asked.command == "POST":
            return asked.say(201, {"status": {"allowed": is_allowed}})
        found: dict[str, Any] | None = {"gitVersion": "v1.36.0"} if asked.path == "/version" else None
        if asked.path in there:
            found = {"metadata": {"name": "there"}}
        return asked.say(404, {"message": "it is absent"}) if found is None else asked.say(200, found)

    options = Options(GATEWAY, "image", "models", "/artifacts", gpu_allocation=GpuAllocation.CLAIMS)
    with api_server(tmp_path, answer) as kubeconfig:
        api = Api(kubeconfig)
        found = [each for each in check(api, options, ()) if "claims" in each.about or "devices" in each.about]
        without = [each.about for each in check(api, Options(GATEWAY, "image", "models", "/artifacts"), ())]
        api.close()
    (finding,) = found
    assert sentence in finding.message
    assert finding.ok == (not finding.remedy)
    assert not [each for each in without if "claims" in each or "devices" in each]
