"""metric_tags and model_metrics of a config."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import metrics_config

CONTROL = 'model_metrics {{ metric_control {{ metric_identifier {{ family: "{}" }} histogram_options {{ {} }} }} }}'
FAMILY = "nv_inference_first_response_histogram_ms"


@pytest.mark.feature("C22")
def test_tags_and_buckets_are_read() -> None:
    text = 'metric_tags { key: "team" value: "vision" }' + CONTROL.format(FAMILY, "buckets: [10, 2.5e1]")
    found = metrics_config(text_format.Parse(text, proto.ModelConfig()))
    assert found.tags == {"team": "vision"}
    assert found.first_response_edges_ms == (10, 25)


def test_a_config_without_them_has_tritons_buckets() -> None:
    assert metrics_config(proto.ModelConfig()).first_response_edges_ms == (100, 500, 2000, 5000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param('metric_tags { key: "a-b" value: "" }', "'a-b' cannot be a label", id="no label"),
        pytest.param('metric_tags { key: "model" value: "" }', "'model' cannot be a label", id="a label that is taken"),
        pytest.param(CONTROL.format("other", "buckets: 1"), "the buckets of 'other' cannot be chosen", id="a family"),
        pytest.param(CONTROL.format(FAMILY, ""), "must be ascending numbers > 0, found []", id="no buckets"),
        pytest.param(CONTROL.format(FAMILY, "buckets: [2, 1]"), "found [2.0, 1.0]", id="descending buckets"),
        pytest.param(CONTROL.format(FAMILY, "buckets: [1, inf]"), "found [1.0, inf]", id="an endless bucket"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        metrics_config(text_format.Parse(text, proto.ModelConfig(name="m")))
    assert sentence in str(caught.value)
