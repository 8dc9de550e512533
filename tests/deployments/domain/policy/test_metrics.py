from datetime import timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from common.files.document import Document
from deployments.domain.policy.metrics import Metric, metrics_json, parse_metrics

QUERY = 'rate(x{r="{{revision}}"}[{{interval}}])'
DEADLINE = timedelta(minutes=5)


def parsed(*metrics: dict[str, Any], deadline: timedelta = DEADLINE) -> tuple[Metric, ...]:
    return parse_metrics(Document({"metrics": list(metrics)}, "analysis"), deadline)


@pytest.mark.parametrize(
    ("file", "metric"),
    [
        pytest.param(
            {"name": "queue", "query": QUERY, "max": 0.5},
            Metric("queue", QUERY, maximum=0.5),
            id="a limit, and the defaults: every 10 s, three looks, a tenth of them may be beyond it",
        ),
        pytest.param(
            {
                "name": "queue",
                "query": QUERY,
                "min": -1,
                "max": 2,
                "interval": "30s",
                "minLooks": 5,
                "allowedPercent": 20,
            },
            Metric("queue", QUERY, timedelta(seconds=30), 5, 20.0, -1.0, 2.0),
            id="everything of bounds",
        ),
        pytest.param(
            {"name": "queue", "query": QUERY, "maxIncreasePercent": 10},
            Metric("queue", QUERY, min_looks=6, allowed_percent=50.0, max_increase_percent=10.0),
            id="a comparison, of whose looks half may go against the canary",
        ),
        pytest.param(
            {"name": "score", "query": QUERY, "maxDecreasePercent": 5},
            Metric("score", QUERY, min_looks=6, allowed_percent=50.0, max_decrease_percent=5.0),
            id="a comparison of what should be high",
        ),
        pytest.param(
            {"name": "queue", "query": "rate(x[1m])", "max": 1},
            Metric("queue", "rate(x[1m])", timedelta(minutes=1), maximum=1.0),
            id="the interval is as long as what the query looks back over",
        ),
    ],
)
def test_a_metric_is_read_and_written(file: dict[str, Any], metric: Metric) -> None:
    assert parsed(file) == (metric,)
    (written,) = metrics_json((metric,))
    assert parsed(written) == (metric,)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        pytest.param({"name": "Queue Time"}, "name", "expected a DNS label", id="name"),
        pytest.param({"query": "sum("}, "query", "has a '(' that is never closed", id="query"),
        pytest.param({"max": None}, "name", "'queue' needs one kind of limit: max and min, or", id="no limit"),
        pytest.param({"maxIncreasePercent": 5}, "name", "for two kinds write two metrics", id="two kinds of limits"),
        pytest.param({"min": 2}, "min", "is 2, above max, which is 1", id="nothing between"),
        pytest.param({"max": "1"}, "max", "is '1'; expected a number", id="a limit that is no number"),
        pytest.param({"max": None, "maxIncreasePercent": -1}, "maxIncreasePercent", "is -1; expected", id="negative"),
        pytest.param(
            {"max": None, "maxIncreasePercent": 1, "query": "up"},
            "query",
            "asks the same of canary and stable, so they cannot be compared; let it select by {{revision}}",
            id="nothing to compare",
        ),
        pytest.param(
            {"max": None, "maxIncreasePercent": 1, "allowedPercent": 5},
            "allowedPercent",
            "is not a field that Fairlead can honour here",
            id="how much is allowed of a comparison is no choice",
        ),
        pytest.param(
            {"query": "rate(x[1m])", "interval": "10s"},
            "interval",
            "is 10s, but the query looks back over 1m: looks that share their data would count it more than once",
            id="looks that overlap",
        ),
        pytest.param({"interval": "1s500ms"}, "interval", "is 1s500ms; expected whole seconds", id="half a second"),
        pytest.param(
            {"interval": "2m"}, "interval", "is 2m, so 3 looks take 6m, and the deadline is 5m", id="never decided"
        ),
        pytest.param({"provider": "datadog"}, "provider", "is not a field that Fairlead can honour", id="unknown"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(change: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parsed({"name": "queue", "query": QUERY, "max": 1} | change)
    assert raised.value.field == f"analysis.metrics[0].{field}"
    assert said in raised.value.message


def test_two_metrics_have_two_names() -> None:
    with pytest.raises(InvalidInput, match="has two that are called 'queue'; each needs a name of its own"):
        parsed({"name": "queue", "query": QUERY, "max": 1}, {"name": "queue", "query": QUERY, "min": 1})


def test_a_policy_cannot_ask_without_end() -> None:
    with pytest.raises(InvalidInput, match="has 11 entries; expected at most 10"):
        parsed(*({"name": f"queue-{number}", "query": QUERY, "max": 1} for number in range(11)))
