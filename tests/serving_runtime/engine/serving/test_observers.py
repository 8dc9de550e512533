"""Requests that are followed through the engine, of every kind of model; and that nothing is in the way of others."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import InferRequest, Outcome, RequestContext, Tensor
from serving_runtime.engine.lifecycle.control_mode import Control
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.observers import Observers
from serving_runtime.telemetry.tap.share import Share
from serving_runtime.telemetry.tap.sinks import Event
from serving_runtime.telemetry.tap.tap import Tap
from serving_runtime.telemetry.tap.taps import TAP_METRIC, Taps
from serving_runtime.telemetry.tracing.settings import TraceOptions, TraceSettings
from serving_runtime.telemetry.tracing.trace import Trace
from serving_runtime.telemetry.tracing.tracer import Tracer
from serving_runtime.telemetry.tracing.triton_file import items
from tests.serving_runtime import onnx_models

OWN = Path(__file__).parents[2] / "own_backends"


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    def write(self, trace: Trace, _settings: TraceSettings) -> None:
        self.traces.append(trace)

    def close(self) -> None:
        pass


def request(model: str, name: str, datatype: str, array: Array) -> InferRequest:
    return InferRequest(model, "", (Tensor(name, DATATYPES[datatype], array),), context=RequestContext("abc"))


def identity(model: str) -> InferRequest:
    return request(model, "x", "FP32", np.ones((1, 4), np.float32))


async def answered(engine: Engine, asked: InferRequest, *, stream: bool = False) -> Outcome:
    """Return the last answer to a request."""
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def take(outcome: Outcome) -> None:
        if getattr(outcome, "final", True):
            answer.set_result(outcome)

    (engine.stream if stream else engine.infer)(asked, take)
    return await asyncio.wait_for(answer, 10)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """a and b, identities; both, an ensemble of them; repeat, decoupled."""
    for name in ("a", "b"):
        onnx_models.identity(onnx_models.configure(tmp_path / name, "max_batch_size: 8") / "1" / "model.onnx")
    steps = "".join(
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "x" value: "{came}" }} '
        f'output_map {{ key: "y" value: "{went}" }} }} '
        for model, came, went in (("a", "x", "between"), ("b", "between", "y"))
    )
    tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    both = f'platform: "ensemble" max_batch_size: 8 {tensors} ensemble_scheduling {{ {steps} }}'
    (onnx_models.configure(tmp_path / "both", both) / "1").mkdir()
    decoupled = 'backend: "repeat" model_transaction_policy { decoupled: true }'
    (onnx_models.configure(tmp_path / "repeat", decoupled) / "1").mkdir()
    return tmp_path


ALL = TraceOptions(settings=TraceSettings(("TIMESTAMPS", "TENSORS"), rate=1))


async def loaded(models: Path, observers: Observers, *, on_demand: bool = False) -> Engine:
    """Return an engine with these observers."""
    engine = Engine([models], LoadSettings(backend_directory=OWN), Control(on_demand=on_demand), observers=observers)
    assert await engine.load_all() == []
    return engine


async def followed(models: Path, asked: InferRequest, *, stream: bool = False, on_demand: bool = False) -> Trace:
    """Return the trace of one followed request."""
    sink = Kept()
    engine = await loaded(models, Observers(Tracer(ALL, sink)), on_demand=on_demand)
    await answered(engine, asked, stream=stream)
    engine.close()
    (trace,) = sink.traces
    return trace


async def test_a_models_request_has_one_step(models: Path) -> None:
    trace = await followed(models, identity("a"))
    assert (trace.model, trace.version, trace.error, trace.context.request_id) == ("a", "1", "", "abc")
    ((model, version, arrived_ns, timing),) = trace.steps
    assert (model, version) == ("a", "1")
    moments = [trace.began_ns, arrived_ns, *timing, trace.ended_ns]
    assert moments == sorted(moments)


async def test_an_ensembles_request_has_a_step_of_each_model(models: Path) -> None:
    trace = await followed(models, identity("both"))
    assert trace.model == "both"
    assert [step.model for step in trace.steps] == ["a", "b"]
    assert trace.steps[0].timing.output_done <= trace.steps[1].timing.started
    about = [item for item in items(trace, ["TIMESTAMPS"]) if "model_name" in item]
    assert [(item["id"], item["model_name"], item.get("parent_id")) for item in about] == [
        (1, "both", None), ("1.1", "a", 1), ("1.2", "b", 1),
    ]  # fmt: skip


async def test_tensors_that_come_and_go_are_told_as_text(models: Path) -> None:
    trace = await followed(models, identity("a"))
    about, came, went = items(trace, ["TENSORS"])
    assert about == {"id": 1, "model_name": "a", "model_version": 1, "request_id": "abc"}
    assert came["activity"] == "TENSOR_QUEUE_INPUT"
    assert came["tensor"] == {"name": "x", "data": "1.0,1.0,1.0,1.0", "shape": "1,4", "dtype": "FP32"}
    assert (went["activity"], went["tensor"]["name"]) == ("TENSOR_BACKEND_OUTPUT", "y")


async def test_a_stream_ends_with_its_last_answer(models: Path) -> None:
    trace = await followed(models, request("repeat", "x", "INT32", np.array([3], np.int32)), stream=True)
    assert [step.model for step in trace.steps] == ["repeat"]
    assert trace.tensors is not None
    assert [int(tensor.array[0]) for _, tensor in trace.tensors] == [3, 0, 1, 2]


async def test_a_request_that_waits_for_its_model_is_followed_once(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "a" / "1" / "model.onnx")
    trace = await followed(tmp_path, identity("a"), on_demand=True)
    assert (trace.model, trace.version, [step.model for step in trace.steps]) == ("a", "1", ["a"])


async def test_a_request_that_is_refused_is_told_with_its_error(models: Path) -> None:
    sink = Kept()
    engine = await loaded(models, Observers(Tracer(ALL, sink)))
    with pytest.raises(InvalidArgument):
        engine.infer(request("a", "z", "FP32", np.ones((1, 4), np.float32)), lambda _outcome: None)
    engine.close()
    assert "unexpected inference input 'z'" in sink.traces[0].error


async def test_requests_are_traced_while_the_settings_have_a_level(models: Path) -> None:
    sink = Kept()
    tracer = Tracer(TraceOptions(settings=TraceSettings(rate=1)), sink)
    observers = Observers(tracer)
    engine = await loaded(models, observers)
    infer = engine.infer  # a caller may keep it
    for level, traced in (("OFF", 0), ("TIMESTAMPS", 1), ("OFF", 1)):
        tracer.update({"trace_level": [level]})
        assert observers.active is (level != "OFF")
        await answered(engine, identity("a"))
        assert len(sink.traces) == traced
    assert engine.infer == infer
    engine.close()


class Written:
    """A tap's sink that keeps what it is told."""

    gather_s = 0.0

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, events: list[Event]) -> None:
        self.events += events

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


async def test_a_tap_records_while_its_share_is_above_0(models: Path, tmp_path: Path) -> None:
    file, sink = tmp_path / "share", Written()
    tap = Tap(sink, source="/s", share=Share(1, file), max_pending_bytes=1_000_000)
    observers = Observers(Tracer(TraceOptions(), Kept()), Taps({TAP_METRIC: tap}))
    engine = await loaded(models, observers)
    assert not observers.active
    await answered(engine, identity("a"))
    file.write_text("1")
    tap.look()
    assert observers.active
    await answered(engine, identity("both"))  # the steps of an ensemble are no requests of clients
    file.unlink()
    tap.look()
    assert not observers.active
    await answered(engine, identity("a"))
    engine.close()
    tap.close()
    assert len(sink.events) == 2


async def test_a_request_may_be_traced_and_recorded(models: Path) -> None:
    traces, events = Kept(), Written()
    tap = Tap(events, source="/s", share=Share(1), max_pending_bytes=1_000_000)
    engine = await loaded(models, Observers(Tracer(ALL, traces), Taps({TAP_METRIC: tap})))
    await answered(engine, request("repeat", "x", "INT32", np.array([2], np.int32)), stream=True)
    with pytest.raises(InvalidArgument):
        engine.infer(request("a", "z", "FP32", np.ones((1, 4), np.float32)), lambda _outcome: None)
    engine.close()
    tap.close()
    assert [bool(trace.error) for trace in traces.traces] == [False, True]
    assert [event["data"].get("error", "")[:20] for event in events.events] == [
        "", "", "", "", "", "unexpected inference",
    ]  # fmt: skip
