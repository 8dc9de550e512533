"""KServe's `timeout` and `deploymentStrategy`: honoured, but for what would fail requests."""

import copy
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import parse_service, refuse_on, rolling_json, stored_rolling
from integrations.clusters.base import Rolling
from tests.deployments._support.service_files import FILE


def saying(**predictor: Any) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["predictor"] |= predictor
    return document


def rolling(min_replicas: int = 4, **numbers: Any) -> Rolling | None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": numbers}
    return parse_service(saying(minReplicas=min_replicas, deploymentStrategy=strategy)).rolling


def test_a_file_that_says_neither_leaves_both_as_they_were() -> None:
    spec = parse_service(FILE)
    assert (spec.request_timeout_s, spec.rolling) == (0, None)


def test_a_timeout_is_in_seconds() -> None:
    assert parse_service(saying(timeout=30)).request_timeout_s == 30


@pytest.mark.parametrize("wrong", [0, -1, 86_401, "30s", 1.5])
def test_a_wrong_timeout_is_refused_by_its_name(wrong: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(timeout=wrong))
    assert caught.value.field == "spec.predictor.timeout"


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param({}, Rolling(1, 0), id="what is not said is one more, none fewer"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, Rolling(0, 1), id="without surge, for nodes that are full"),
        pytest.param({"maxSurge": "25%", "maxUnavailable": "50%"}, Rolling("25%", "50%"), id="percentages"),
    ],
)
def test_a_strategy_that_leaves_one_replica_is_taken(numbers: dict[str, Any], expected: Rolling) -> None:
    assert rolling(**numbers) == expected
    assert stored_rolling(rolling_json(expected)) == expected


@pytest.mark.parametrize(
    ("min_replicas", "numbers"),
    [
        pytest.param(1, {"maxSurge": 0, "maxUnavailable": 1}, id="the only one"),
        pytest.param(1, {"maxSurge": 1, "maxUnavailable": 1}, id="the only one, while another starts"),
        pytest.param(4, {"maxUnavailable": 4}, id="all of them"),
        pytest.param(4, {"maxUnavailable": "100%"}, id="all of them, in percent"),
        pytest.param(1, {"maxSurge": "0%", "maxUnavailable": "25%"}, id="both come to 0, which takes one away"),
    ],
)
def test_a_strategy_by_which_none_might_serve_is_refused_with_the_reason(
    min_replicas: int, numbers: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="none might serve while they are replaced") as caught:
        rolling(min_replicas, **numbers)
    assert caught.value.field == "spec.predictor.deploymentStrategy.rollingUpdate.maxUnavailable"


@pytest.mark.parametrize(
    ("strategy", "field", "why"),
    [
        ({"type": "Recreate"}, "type", "so that requests would fail; choose RollingUpdate"),
        ({"type": "Sometimes"}, "type", "expected RollingUpdate"),
        ({"rollingUpdate": {"maxSurge": "many"}}, "rollingUpdate.maxSurge", "expected a number from 0 to 100, or"),
        ({"rollingUpdate": {"maxSurge": True}}, "rollingUpdate.maxSurge", "expected a number from 0 to 100, or"),
        ({"rollingUpdate": {"partition": 1}}, "rollingUpdate.partition", "it knows maxSurge, maxUnavailable"),
    ],
)
def test_a_wrong_strategy_is_refused_by_its_name(strategy: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        parse_service(saying(deploymentStrategy=strategy))
    assert caught.value.field == f"spec.predictor.deploymentStrategy.{field}"


def test_the_local_cluster_has_no_strategy() -> None:
    with pytest.raises(InvalidInput, match="the local cluster replaces one replica after the other"):
        refuse_on("local", parse_service(saying(deploymentStrategy={"type": "RollingUpdate"})))
