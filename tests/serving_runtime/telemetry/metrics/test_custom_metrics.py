"""Series that several have, and when they go."""

from collections.abc import Sequence

import pytest

from serving_runtime.telemetry.metrics import protobuf, text
from serving_runtime.telemetry.metrics.custom_metrics import OwnMetrics
from serving_runtime.telemetry.metrics.families import Buckets

A = {"a": "1"}


@pytest.fixture
def metrics() -> OwnMetrics:
    return OwnMetrics()


def test_a_series_is_one_for_all_who_make_it_and_goes_with_the_last(metrics: OwnMetrics) -> None:
    for owner in ("one", "one", "two"):
        assert metrics.make(owner, "seen", "counter", "", A) == ""
        metrics.change("seen", A, "increment", 2)
    metrics.drop("one", "seen", A)
    metrics.close("two")
    assert [family.samples for family in metrics.families()] == [[(A, 6.0)]]
    metrics.drop("one", "seen", A)
    assert list(metrics.families()) == []
    metrics.change("seen", A, "increment", 1)
    assert metrics.value("seen", A) == 0


def test_a_histogram_counts_a_value_at_an_edge_below_it(metrics: OwnMetrics) -> None:
    metrics.make("one", "height", "histogram", "", {}, (1, 10))
    for value in (1, 1.5, 11):
        metrics.change("height", {}, "observe", value)
    [family] = metrics.families()
    assert family.samples == [({}, Buckets((1, 10), (1, 1, 1), 13.5))]
    assert b'height_bucket{le="10"} 2' in text.render([family])
    assert b"height" in protobuf.render([family])


@pytest.mark.parametrize(
    ("name", "kind", "labels", "edges", "sentence"),
    [
        pytest.param("1st", "counter", {}, (), "cannot be a metric's name", id="a name with a digit first"),
        pytest.param("nv_x", "counter", {}, (), "are the server's own", id="a name of the server's"),
        pytest.param("x", "number", {}, (), "is of kind 'number'", id="no such kind"),
        pytest.param("x", "counter", {"a-b": "1"}, (), "label 'a-b'", id="no label"),
        pytest.param("x", "counter", {"a": 1}, (), "with value 1", id="no text"),
        pytest.param("x", "histogram", {}, (2, 1), "must ascend; found [2, 1]", id="edges that fall"),
        pytest.param("x", "histogram", {}, (), "must ascend", id="no edges"),
        pytest.param("x", "gauge", {}, (1,), "has no buckets", id="edges of a gauge"),
        pytest.param("seen", "gauge", {}, (), "is a counter already", id="another kind than before"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(
    metrics: OwnMetrics, name: str, kind: str, labels: dict[str, str], edges: Sequence[float], sentence: str
) -> None:
    metrics.make("one", "seen", "counter", "", {})
    assert sentence in metrics.make("one", name, kind, "", labels, edges)
