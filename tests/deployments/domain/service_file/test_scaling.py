"""KServe's fields for replicas, as far as they are honoured."""

from typing import Any

import pytest

from common.errors import InvalidInput
from common.files.document import Document
from deployments.domain.service_file.scaling import ScaleMetric, Scaling, parse_scaling, put_scaling


def _parse(**predictor: Any) -> Scaling:
    return parse_scaling(Document(predictor, "spec.predictor"))


@pytest.mark.parametrize(
    ("predictor", "scaling"),
    [
        pytest.param({}, Scaling(1, 1), id="nothing"),
        pytest.param({"minReplicas": 2}, Scaling(2, 2), id="fixed"),
        pytest.param({"maxReplicas": 3}, Scaling(1, 3), id="by its load"),
        pytest.param(
            {"maxReplicas": 3, "scaleMetric": "concurrency", "scaleTarget": 4, "containerConcurrency": 8},
            Scaling(1, 3, ScaleMetric.CONCURRENCY, 4, 8),
            id="all",
        ),
        pytest.param(
            {"maxReplicas": 3, "scaleMetric": "avg_time_queue_ms", "scaleTarget": 2.5},
            Scaling(1, 3, ScaleMetric.QUEUE_TIME, 2.5),
            id="queue time",
        ),
        pytest.param({"containerConcurrency": 0}, Scaling(1, 1), id="no limit"),
        pytest.param({"maxReplicas": 3, "scaleMetric": "cpu"}, Scaling(1, 3, ScaleMetric.CPU), id="CPU"),
        pytest.param(
            {"maxReplicas": 3, "scaleMetric": "pods/nv_gpu_utilization", "scaleTarget": 0.7},
            Scaling(1, 3, "pods/nv_gpu_utilization", 0.7),
            id="a metric of the cluster's",
        ),
    ],
)
def test_a_predictor_is_read_and_written(predictor: dict[str, Any], scaling: Scaling) -> None:
    assert _parse(**predictor) == scaling
    written: dict[str, Any] = {"scaleMetric": "rps", "model": {}}
    put_scaling(written, scaling)
    assert written.pop("model") == {}
    assert _parse(**written) == scaling


@pytest.mark.parametrize(
    ("predictor", "field", "sentence"),
    [
        pytest.param({"minReplicas": -1}, "minReplicas", "is -1; expected a whole number from 0", id="below zero"),
        pytest.param({"minReplicas": 0, "maxReplicas": 0}, "maxReplicas", "is 0; expected", id="never any"),
        pytest.param({"minReplicas": 3, "maxReplicas": 2}, "maxReplicas", "less than minReplicas", id="max below min"),
        pytest.param(
            {"maxReplicas": 2, "scaleMetric": "cpu", "scaleTarget": 101},
            "scaleTarget",
            "from 1 to 100",
            id="cpu above all",
        ),
        pytest.param(
            {"maxReplicas": 2, "scaleMetric": "pods/a-b"}, "scaleMetric", "or pods/NAME", id="no metric's name"
        ),
        pytest.param(
            {"maxReplicas": 2, "scaleMetric": "pods/q"}, "scaleTarget", "how much pods/q", id="named, no target"
        ),
        pytest.param({"maxReplicas": 2, "scaleMetric": "memory"}, "scaleMetric", "when it is loaded", id="memory"),
        pytest.param(
            {"maxReplicas": 2, "scaleMetric": "gpu"}, "scaleMetric", "expected concurrency, rps", id="unknown"
        ),
        pytest.param({"maxReplicas": 2, "scaleMetric": "rps"}, "scaleTarget", "is missing", id="rps without target"),
        pytest.param({"maxReplicas": 2, "scaleTarget": 0}, "scaleTarget", "expected a number from", id="target 0"),
        pytest.param({"scaleTarget": 4}, "scaleTarget", "raise maxReplicas", id="target of what does not scale"),
        pytest.param({"scaleMetric": "rps", "scaleTarget": 1}, "scaleMetric", "raise maxReplicas", id="metric too"),
        pytest.param({"containerConcurrency": -1}, "containerConcurrency", "from 0 to 1000", id="less than no limit"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(predictor: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refused:
        _parse(**predictor)
    assert refused.value.field == f"spec.predictor.{field}"
    assert refused.value.message.startswith(f"spec.predictor.{field} ")


@pytest.mark.parametrize(
    ("scaling", "targets"),
    [
        pytest.param(Scaling(1, 2), {"concurrency": 10, "avg_time_queue_ms": 50}, id="both by default"),
        pytest.param(
            Scaling(1, 2, container_concurrency=10), {"concurrency": 7, "avg_time_queue_ms": 50}, id="below the limit"
        ),
        pytest.param(Scaling(1, 2, target=3), {"concurrency": 3}, id="a target alone is concurrency's"),
        pytest.param(Scaling(1, 2, ScaleMetric.CONCURRENCY), {"concurrency": 10}, id="one metric"),
        pytest.param(Scaling(1, 2, ScaleMetric.RPS, 200), {"rps": 200}, id="another"),
        pytest.param(Scaling(1, 2, ScaleMetric.CPU), {"cpu": 80}, id="percent of the CPU"),
        pytest.param(Scaling(1, 2, "pods/depth", 3), {"pods/depth": 3}, id="one by its name"),
    ],
)
def test_what_is_watched(scaling: Scaling, targets: dict[str, float]) -> None:
    assert scaling.targets == targets
