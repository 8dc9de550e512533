"""Limits of a service's requests, as its file says them and as they are stored."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import limits_json, parse_service, stored_limits
from integrations.clusters.base import Limits


def parsed(limits: Any) -> Limits | None:
    """Return the limits of a file with `spec.limits`."""
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"limits": limits, "predictor": {"model": model}},
    }
    return parse_service(document).limits


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ({}, Limits()),
        ({"requestsPerSecond": 200}, Limits(200)),
        ({"perCaller": {"requestsPerSecond": 20}}, Limits(None, 20)),
        ({"requestsPerSecond": 200, "perCaller": {"requestsPerSecond": 20}}, Limits(200, 20)),
        ({"requestBytes": 67_108_864}, Limits(None, None, 67_108_864)),
        ({"rowsPerMinute": 1_000_000_000}, Limits(rows_per_minute=1_000_000_000)),
        ({"perCaller": {"rowsPerMinute": 5}}, Limits(caller_rows_per_minute=5)),
        (
            {"rowsPerMinute": 9, "perCaller": {"requestsPerSecond": 2, "rowsPerMinute": 5}},
            Limits(caller_requests_per_second=2, rows_per_minute=9, caller_rows_per_minute=5),
        ),
        ({"perCaller": {"concurrentRequests": 10_000}}, Limits(caller_concurrent_requests=10_000)),
        (
            {"perCaller": {"requestsPerSecond": 20, "concurrentRequests": 1}},
            Limits(None, 20, caller_concurrent_requests=1),
        ),
    ],
)
def test_each_form_is_read_and_stored(said: Any, limits: Limits) -> None:
    assert parsed(said) == limits
    assert limits_json(limits) == said
    assert stored_limits(said) == limits


def test_a_file_without_them_says_nothing_and_an_old_service_has_none() -> None:
    assert parsed(None) is None
    assert stored_limits(None) == Limits()


@pytest.mark.parametrize(
    "said",
    [
        7,
        {"requestsPerSecond": 0},
        {"requestsPerSecond": 1_000_001},
        {"requestsPerSecond": 1.5},
        {"requestsPerSecond": "20"},
        {"requestsPerMinute": 20},
        {"perCaller": 20},
        {"perCaller": {"requests": 20}},
        {"perCaller": {"requestsPerSecond": -1}},
        {"perCaller": {"requestBytes": 1}},
        {"perCaller": {"concurrentRequests": 0}},
        {"perCaller": {"concurrentRequests": 10_001}},
        {"perCaller": {"concurrentRequests": "4"}},
        {"concurrentRequests": 4},
        {"requestBytes": 0},
        {"requestBytes": 67_108_865},
        {"requestBytes": "1Mi"},
        {"rowsPerMinute": 0},
        {"rowsPerMinute": 1_000_000_001},
        {"rowsPerMinute": True},
        {"rowsPerSecond": 5},
        {"perCaller": {"rowsPerMinute": "5"}},
    ],
)
def test_what_is_wrong_is_refused_by_name(said: Any) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.limits"):
        parsed(said)
