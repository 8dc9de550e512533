"""Fields of a config that are looked at without a model: the first mistake is told by its dotted name."""

import pytest

from serving_runtime.config.fragment import Mistake, mistake_in


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(
            'name: "m"\nmax_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 100 }', id="fields"
        ),
        pytest.param('parameters { key: "a}{" value { string_value: "it\'s" } }', id="a map"),
    ],
)
def test_what_can_be_set_is_no_mistake(text: str) -> None:
    assert mistake_in(text) is None


@pytest.mark.parametrize(
    ("text", "field", "error"),
    [
        pytest.param("max_batch: 3", "max_batch", 'has no field named "max_batch"', id="an unknown field"),
        pytest.param(
            "dynamic_batching { max_quue: 1 }",
            "dynamic_batching.max_quue",
            'message type "ModelDynamicBatching" has no field named "max_quue"',
            id="an unknown field below another",
        ),
        pytest.param('max_batch_size: "a"', "max_batch_size", "couldn't parse integer", id="a text for a number"),
        pytest.param(
            'dynamic_batching { default_queue_policy { max_queue_size: 1 } preferred_batch_size: "x" }',
            "dynamic_batching.preferred_batch_size",
            "couldn't parse integer",
            id="a wrong type after a closed message",
        ),
        pytest.param(
            "instance_group { kind: KIND_XPU count: 2 }",
            "instance_group.kind",
            "no value named KIND_XPU",
            id="an unknown word of an enum",
        ),
        pytest.param(
            'metric_tags { key: "a: {" value: 3 }', "metric_tags.value", "expected string", id="brackets in a text"
        ),
        pytest.param("dynamic_batching: 3", "dynamic_batching", 'expected "{"', id="a number for a message"),
        pytest.param(
            "max_batch_size: 1\nmax_batch_size: 2", "max_batch_size", "should not have multiple", id="a list for one"
        ),
        pytest.param(
            'instance_group { host_policy: "p" }',
            "instance_group.host_policy",
            "this runtime does not support it",
            id="a field that is not honoured",
        ),
        pytest.param(
            'instance_group { host_policy: "p" passive: true }',
            "instance_group.passive",
            "does not support it, nor does it support instance_group.host_policy",
            id="two fields that are not honoured",
        ),
    ],
)
def test_the_first_mistake_is_told_by_its_field(text: str, field: str, error: str) -> None:
    found = mistake_in(text)
    assert isinstance(found, Mistake)
    assert found.field == field
    assert error in found.error
    assert "\n" not in found.error
