"""`spec.placement` of a service file: replicas apart from one another, or together."""

import copy
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import (
    PlacementPreference,
    parse_service,
    placement_json,
    refuse_on,
    stored_placement,
)
from integrations.clusters.base import Arrangement
from placement.packing.measured_latency import LatencyTarget
from tests.deployments._support.service_files import FILE


def saying(placement: Any, gpu: object = "auto") -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["placement"] = placement
    if gpu:
        document["spec"]["predictor"]["model"]["resources"] = {"limits": {"nvidia.com/gpu": gpu}}
    return document


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        pytest.param({"replicas": "spread"}, PlacementPreference(Arrangement.SPREAD), id="apart"),
        pytest.param({"replicas": "pack"}, PlacementPreference(Arrangement.PACK), id="together"),
        pytest.param(
            {"latency": {"p99Ms": 20.0, "batchSize": 8}},
            PlacementPreference(latency=LatencyTarget(20.0, 8)),
            id="in time",
        ),
        pytest.param({"sharing": True}, PlacementPreference(sharing=True), id="with others"),
        pytest.param({}, PlacementPreference(), id="left to the cluster"),
    ],
)
def test_what_is_said_is_kept_as_it_stands(said: dict[str, Any], wish: PlacementPreference) -> None:
    assert parse_service(saying(said)).placement == wish
    assert placement_json(wish) == said
    assert stored_placement(said) == wish


def test_a_file_that_says_nothing_leaves_it_to_the_cluster() -> None:
    assert parse_service(FILE).placement == PlacementPreference()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        pytest.param({"replicas": "apart"}, "spec.placement.replicas", id="a word that is not known"),
        pytest.param({"replicas": True}, "spec.placement.replicas", id="no word"),
        pytest.param({"zones": 3}, "spec.placement.zones", id="a field that is not known"),
        pytest.param({"latency": {"batchSize": 8}}, "spec.placement.latency.p99Ms", id="a latency without a number"),
        pytest.param({"latency": {"p99Ms": 0}}, "spec.placement.latency.p99Ms", id="no time at all"),
        pytest.param({"latency": {"p99Ms": 1, "batchSize": 0}}, "spec.placement.latency.batchSize", id="no request"),
        pytest.param({"sharing": "yes"}, "spec.placement.sharing", id="no truth value"),
        pytest.param(
            {"sharing": True, "latency": {"p99Ms": 20}}, "spec.placement.sharing", id="with others, and yet in time"
        ),
        pytest.param("spread", "spec.placement", id="no object"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(wrong: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(wrong))
    assert caught.value.field == field


@pytest.mark.parametrize("gpu", [pytest.param(None, id="on a CPU"), pytest.param(1, id="on what is named")])
@pytest.mark.parametrize(
    ("name", "said"),
    [pytest.param("latency", {"p99Ms": 20}, id="latency"), pytest.param("sharing", True, id="sharing")],
)
def test_some_is_for_a_slice_that_is_chosen(name: str, said: object, gpu: object) -> None:
    with pytest.raises(InvalidInput, match=r"nvidia\.com/gpu: auto") as caught:
        parse_service(saying({name: said}, gpu))
    assert caught.value.field == f"spec.placement.{name}"


def test_the_local_cluster_has_one_machine() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.placement is for services on Kubernetes"):
        refuse_on("local", parse_service(saying({"replicas": "spread"}, None)))
