"""KServe's `batcher` of a predictor becomes the runtime's dynamic batcher."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import content_of, file_saying, parse_service
from integrations.clusters.local.jobs.config_check import check_config
from tests.deployments._support.service_files import FILE


def saying(batcher: object, config: dict[str, Any] | None = None) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["predictor"]["batcher"] = batcher
    if config is not None:
        document["spec"]["predictor"]["model"]["config"] = config
    return document


@pytest.mark.parametrize(
    ("batcher", "config"),
    [
        pytest.param({}, {"max_batch_size": 32, "dynamic_batching": {}}, id="without words: 32 rows, and no waiting"),
        pytest.param(
            {"maxBatchSize": 16, "maxLatency": 500},
            {"max_batch_size": 16, "dynamic_batching": {"max_queue_delay_microseconds": 500_000}},
            id="maxLatency in milliseconds is how long the oldest waits for others",
        ),
        pytest.param(
            {"timeout": 60},
            {
                "max_batch_size": 32,
                "dynamic_batching": {
                    "default_queue_policy": {
                        "timeout_action": "REJECT",
                        "default_timeout_microseconds": 60_000_000,
                    }
                },
            },
            id="timeout in seconds is after how long in the queue a request is refused",
        ),
    ],
)
def test_a_batcher_is_the_dynamic_batcher_of_the_runtime(batcher: dict[str, Any], config: dict[str, Any]) -> None:
    found = parse_service(saying(batcher)).model_config
    assert found == config
    check_config(found)


def test_other_fields_of_the_config_stay_beside_a_batcher() -> None:
    found = parse_service(saying({"maxBatchSize": 4}, {"instance_group": [{"count": 2}]})).model_config
    assert found == {"instance_group": [{"count": 2}], "max_batch_size": 4, "dynamic_batching": {}}


@pytest.mark.parametrize("both", ["max_batch_size", "dynamic_batching", "sequence_batching", "ensemble_scheduling"])
def test_a_batcher_beside_a_config_that_says_the_same_is_refused_by_name(both: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying({}, {both: {}}))
    assert caught.value.field == "spec.predictor.batcher"
    assert f"spec.predictor.batcher and spec.predictor.model.config.{both} both say" in caught.value.message


@pytest.mark.parametrize(
    ("batcher", "field"),
    [
        ({"maxBatchSize": 0}, "spec.predictor.batcher.maxBatchSize"),
        ({"maxLatency": -1}, "spec.predictor.batcher.maxLatency"),
        ({"timeout": "60s"}, "spec.predictor.batcher.timeout"),
        ({"maxRows": 3}, "spec.predictor.batcher.maxRows"),
    ],
)
def test_a_wrong_batcher_is_refused_by_the_name_of_its_field(batcher: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(batcher))
    assert caught.value.field == field


def test_a_file_that_is_to_say_another_config_has_no_batcher_any_more() -> None:
    document = saying({"maxBatchSize": 16})
    content = replace(content_of(parse_service(document)), model_config={"max_batch_size": 4})
    changed = file_saying(document, parse_service(document), content)
    assert parse_service(changed).model_config == {"max_batch_size": 4}
    same = content_of(parse_service(document))
    assert file_saying(document, parse_service(document), same) == document
