"""Which requests are followed, by the settings of all models and of single ones."""

from collections.abc import Sequence
from typing import Any

import pytest

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import RequestContext
from serving_runtime.telemetry.tracing.settings import OPENTELEMETRY, TraceOptions, TraceSettings
from serving_runtime.telemetry.tracing.trace import Trace
from serving_runtime.telemetry.tracing.tracer import Tracer

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED, UNSAMPLED = f"00-{TRACE_ID}-00f067aa0ba902b7-01", f"00-{TRACE_ID}-00f067aa0ba902b7-00"


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    def write(self, trace: Trace, _settings: TraceSettings) -> None:
        self.traces.append(trace)

    def close(self) -> None:
        pass


def tracer(mode: str = "triton", **settings: Any) -> Tracer:
    return Tracer(TraceOptions(mode=mode, settings=TraceSettings(**settings)), Kept())


def followed(found: Tracer, requests: int, model: str = "m", context: RequestContext | None = None) -> list[int]:
    """Return which of so many requests are followed, counted from 1."""
    return [number for number in range(1, requests + 1) if found.begin(model, "", context) is not None]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({"levels": (), "rate": 1}, [], id="off"),
        pytest.param({"levels": ("TIMESTAMPS",), "rate": 1}, [1, 2, 3, 4, 5, 6], id="every one"),
        pytest.param({"levels": ("TIMESTAMPS",), "rate": 3}, [3, 6], id="every third"),
        pytest.param({"levels": ("TIMESTAMPS",), "rate": 2, "count": 2}, [2, 4], id="two of every second"),
        pytest.param({"levels": ("TIMESTAMPS",), "rate": 1, "count": 0}, [], id="none"),
    ],
)
def test_rate_and_count_choose_requests(settings: dict[str, Any], expected: Sequence[int]) -> None:
    assert followed(tracer(**settings), 6) == expected


def test_a_caller_that_follows_its_request_has_it_followed_here() -> None:
    found = tracer(OPENTELEMETRY, levels=("TIMESTAMPS",), rate=1000)
    assert followed(found, 2, context=RequestContext(traceparent=SAMPLED)) == [1, 2]
    for other in (UNSAMPLED, "", "00-zz-00-01", f"00-{'0' * 32}-00f067aa0ba902b7-01"):
        assert followed(found, 2, context=RequestContext(traceparent=other)) == []
    found = tracer(levels=("TIMESTAMPS",), rate=1000)  # a file has no callers
    assert followed(found, 2, context=RequestContext(traceparent=SAMPLED)) == []


def test_a_new_count_begins_anew() -> None:
    found = tracer(levels=("TIMESTAMPS",), rate=1, count=1)
    assert followed(found, 3) == [1]
    found.update({"trace_count": "2"})
    assert followed(found, 3) == [1, 2]
    found.update({"trace_rate": "1"})
    assert followed(found, 3) == []


@pytest.mark.feature("E10")
def test_a_model_may_have_settings_of_its_own_and_gives_them_back() -> None:
    found = tracer()
    assert not found.active
    found.update({"trace_level": ["TIMESTAMPS"], "trace_rate": 1}, "m")
    assert found.active
    assert (followed(found, 2, "m"), followed(found, 2, "other")) == ([1, 2], [])
    assert found.shown("m")["trace_rate"] == "1"
    assert found.shown()["trace_rate"] == "1000"
    found.update({"trace_rate": "7"})
    assert (found.shown("m")["trace_rate"], found.shown("other")["trace_rate"]) == ("1", "7")
    found.update({"trace_rate": None}, "m")
    assert (found.shown("m")["trace_rate"], found.shown("m")["trace_level"]) == ("7", ["TIMESTAMPS"])
    found.update({"trace_level": None}, "m")
    assert not found.active
    found.update({"trace_rate": None})
    assert found.shown("m")["trace_rate"] == "1000"


def test_the_settings_that_change_are_told() -> None:
    found = tracer()
    seen: list[bool] = []
    found.on_change = lambda: seen.append(found.active)
    found.update({"trace_level": "TIMESTAMPS"})
    found.update({"trace_level": ["OFF"]})
    assert seen == [True, False]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({"trace_level": ["MAX"]}, "trace_level must be OFF, or of TIMESTAMPS and TENSORS", id="a level"),
        pytest.param({"trace_level": ["OFF", "TENSORS"]}, "found ['OFF', 'TENSORS']", id="something and nothing"),
        pytest.param({"trace_level": []}, "found []", id="no level"),
        pytest.param({"trace_rate": "0"}, "trace_rate must be a number >= 1, found '0'", id="no rate"),
        pytest.param({"trace_rate": "often"}, "found 'often'", id="words"),
        pytest.param({"trace_count": -2}, "trace_count must be a number >= -1", id="less than any"),
        pytest.param({"trace_rate": True}, "found True", id="a boolean"),
        pytest.param({"trace_file": "x"}, "chosen by --trace-config", id="the file"),
        pytest.param({"colour": "red"}, "there is no trace setting 'colour'", id="unknown"),
    ],
)
def test_what_cannot_be_set_changes_nothing(changes: dict[str, Any], sentence: str) -> None:
    found = tracer()
    for model in ("", "m"):
        before = found.shown(model)
        with pytest.raises(InvalidArgument) as caught:
            found.update({"trace_rate": "5", **changes}, model)
        assert sentence in str(caught.value)
        assert found.shown(model) == before


def test_spans_hold_no_tensors() -> None:
    with pytest.raises(InvalidArgument, match="TENSORS needs mode=triton"):
        tracer(OPENTELEMETRY).update({"trace_level": ["TENSORS"]})
    found = tracer()
    found.update({"trace_level": ["TENSORS", "TIMESTAMPS"]})
    assert found.shown()["trace_level"] == ["TIMESTAMPS", "TENSORS"]
