"""Models of sequences, served: order, state, control inputs, slots, and what ends a sequence."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import Cancelled, FailureReason, InvalidArgument, ServingError, Unavailable
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.scheduler.job import Job
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import until

pytestmark = pytest.mark.feature("C9", "E15")

CONTROLS = """
    control_input { name: "start" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
    control_input { name: "end" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
    control_input { name: "ready" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }
    control_input { name: "corrid" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
"""
STATE = 'state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [2] }'


def configured(strategy: str, *, more: str = "", state: str = STATE, limit: int = 4, idle_us: int = 60_000_000) -> str:
    idle = f"max_sequence_idle_microseconds: {idle_us}"
    return f"max_batch_size: {limit} {more} sequence_batching {{ {idle} {strategy} {CONTROLS} {state} }}"


def request(model: str, value: float, sequence: object, *, start: bool = False, end: bool = False, **more: object):
    x = Tensor("x", DATATYPES["FP32"], np.array([[value, -value]], "f4"))
    parameters = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end, **more}
    return InferRequest(model, "", (x,), parameters=parameters)


class Asker:
    """Sends requests to an engine and keeps their answers."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def send(self, sent: InferRequest) -> tuple[asyncio.Future[Outcome], Job | None]:
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        try:
            return answer, self.engine.infer(sent, answer.set_result)
        except ServingError as error:
            answer.set_result(error)
            return answer, None

    async def ask(self, *requests: InferRequest) -> list[Outcome]:
        return await asyncio.wait_for(asyncio.gather(*[self.send(sent)[0] for sent in requests]), 10)


@asynccontextmanager
async def serving(folder: Path, config: str, **model: bool) -> AsyncIterator[Asker]:
    onnx_models.accumulator(onnx_models.configure(folder / "m", config) / "1" / "model.onnx", **model)
    engine = Engine([folder], LoadSettings())
    assert await engine.load_all() == []
    try:
        yield Asker(engine)
    finally:
        engine.close()


def outputs(outcome: Outcome) -> dict[str, Array]:
    assert isinstance(outcome, InferResponse), outcome
    return {output.name: output.array for output in outcome.outputs}


def sums(outcomes: Sequence[Outcome]) -> list[float]:
    return [float(outputs(outcome)["sum"][0, 0]) for outcome in outcomes]


CONFIGS = {
    "direct": configured("direct { }"),
    "direct-two": configured("direct { }", more="instance_group { count: 2 }", limit=2),
    "direct-waiting": configured("direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 1.0 }"),
    "oldest": configured("oldest { max_candidate_sequences: 3 }"),
    "oldest-two": configured(
        "oldest { max_candidate_sequences: 2 preferred_batch_size: [2] max_queue_delay_microseconds: 100 }",
        more="instance_group { count: 2 }",
    ),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Asker]]:
    """An engine with a model per strategy, and the loop it lives on."""
    root = tmp_path_factory.mktemp("repository")
    for name, config in CONFIGS.items():
        onnx_models.accumulator(onnx_models.configure(root / name, config) / "1" / "model.onnx")

    async def start() -> Asker:
        engine = Engine([root], LoadSettings())
        assert await engine.load_all() == []
        return Asker(engine)

    with asyncio.Runner() as runner:
        asker = runner.run(start())
        yield runner, asker
        asker.engine.close()


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(sorted(CONFIGS)),
    order=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    pauses=st.dictionaries(st.integers(0, 30), st.integers(1, 5)),
    threads=st.booleans(),
)
def test_interleaved_sequences_answer_as_each_alone(
    served: tuple[asyncio.Runner, Asker], model: str, order: list[int], pauses: dict[int, int], threads: bool
) -> None:
    """`order` says which sequence sends next; `pauses`, for how many passes of the loop nothing is sent after that."""
    runner, asker = served
    scheduler = asker.engine.servable(model).scheduler
    scheduler._meter.inline = not threads  # type: ignore[attr-defined]

    async def play() -> list[tuple[int, Outcome]]:
        answers: list[asyncio.Future[Outcome]] = []
        for place, sequence in enumerate(order):
            first, last = sequence not in order[:place], sequence not in order[place + 1 :]
            answers.append(asker.send(request(model, place + 1, sequence + 1, start=first, end=last))[0])
            for _ in range(pauses.get(place, 0)):
                await asyncio.sleep(0)
        return list(zip(order, await asyncio.wait_for(asyncio.gather(*answers), 10), strict=True))

    totals = dict.fromkeys(order, 0.0)
    rows: dict[int, set[int]] = {}
    for place, (sequence, outcome) in enumerate(runner.run(play())):
        totals[sequence] += place + 1
        found = outputs(outcome)
        assert found["sum"].tolist() == [[totals[sequence], -totals[sequence]]]
        first, last = sequence not in order[:place], sequence not in order[place + 1 :]
        assert found["told"].tolist() == [[first, last, 1, sequence + 1]]
        assert "total_out" not in found
        rows.setdefault(sequence, set()).add(int(found["row"][0, 0]))
    if model.startswith("direct"):
        assert {len(places) for places in rows.values()} == {1}
    assert scheduler.pending == 0


async def test_a_first_request_must_say_that_it_is(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["direct"]) as asker:
        found = await asker.ask(
            request("m", 1, 42),
            request("m", 1, 0, start=True),
            request("m", 1, "", start=True),
            request("m", 1, True, start=True),
            request("m", 1, "x" * 129, start=True),
            request("m", 1, 1, start=1),  # type: ignore[arg-type]
        )
        assert [str(outcome) for outcome in found[:3]] == [
            "inference request for sequence 42 to model 'm' must specify the START flag on the first request of the "
            "sequence",
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
        ]
        assert ["'sequence_id' must be" in str(outcome) for outcome in found[3:]] == [True, True, False]
        assert "'sequence_start' must be true or false, found 1" in str(found[5])
        assert all(isinstance(outcome, InvalidArgument) for outcome in found)


async def test_a_request_of_several_rows_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["direct"]) as asker:
        x = Tensor("x", DATATYPES["FP32"], np.zeros((2, 2), "f4"))
        sent = InferRequest("m", "", (x,), parameters={"sequence_id": 1, "sequence_start": True})
        (outcome,) = await asker.ask(sent)
        assert "must specify batch-size 1 due to requirements of sequence batcher" in str(outcome)


async def test_the_end_is_the_end_and_a_new_start_starts_at_zero(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["oldest"]) as asker:
        first = await asker.ask(request("m", 1, 7, start=True), request("m", 2, 7, end=True), request("m", 3, 7))
        assert sums(first[:2]) == [1, 3]
        assert "must specify the START flag" in str(first[2])
        assert sums(await asker.ask(request("m", 5, 7, start=True, end=True))) == [5]


async def test_a_second_start_begins_anew_in_its_turn(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["direct"]) as asker:
        found = await asker.ask(
            request("m", 1, 7, start=True), request("m", 2, 7), request("m", 4, 7, start=True), request("m", 5, 7)
        )
        assert sums(found) == [1, 3, 4, 9]


async def test_a_correlation_id_that_the_model_cannot_take_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["direct"]) as asker:
        (refused,) = await asker.ask(request("m", 1, "name", start=True))
        assert "sequence_id 'name' does not fit input 'corrid' of model 'm', which is UINT64" in str(refused)
        assert sums(await asker.ask(request("m", 1, 2**64 - 1, start=True))) == [1]


@pytest.mark.parametrize("batched", [True, False])
async def test_a_string_as_the_correlation_id_reaches_the_model(tmp_path: Path, batched: bool) -> None:
    front = ("N",) if batched else ()
    tensors = [("x", TensorProto.FLOAT, (*front, 1)), ("id", TensorProto.STRING, (*front, 1))]
    nodes = [helper.make_node("Identity", ["id"], ["who"]), helper.make_node("Identity", ["x"], ["y"])]
    answers = [("who", TensorProto.STRING, (*front, 1)), ("y", TensorProto.FLOAT, (*front, 1))]
    config = f"""max_batch_size: {4 if batched else 0} sequence_batching {{ control_input {{ name: "id"
        control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING }} }} }}"""
    onnx_models.save(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx", nodes, tensors, answers)
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    x = Tensor("x", DATATYPES["FP32"], np.ones((1, 1) if batched else (1,), "f4"))
    sent = [
        InferRequest("m", "", (x,), parameters={"sequence_id": name, "sequence_start": True})
        for name in ("käse", "1", 1)
    ]
    found = await Asker(engine).ask(*sent)
    assert [outputs(outcome)["who"].ravel().tolist() for outcome in found] == [["käse".encode()], [b"1"], [b"1"]]
    assert engine.model_metadata("m")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 1] if batched else [1]}
    ]
    engine.close()


async def test_a_model_without_a_batch_dimension_has_one_slot(tmp_path: Path) -> None:
    config = f"""sequence_batching {{ direct {{ }} {CONTROLS} {STATE} }}
        output {{ name: "sum" data_type: TYPE_FP32 dims: [2] }}"""
    async with serving(tmp_path, config, batched=False) as asker:

        def one(value: float, sequence: int, *, end: bool = False, start: bool = False) -> InferRequest:
            x = Tensor("x", DATATYPES["FP32"], np.array([value, 0], "f4"))
            return InferRequest(
                "m", "", (x,), parameters={"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
            )

        found = await asker.ask(
            one(1, 1, start=True), one(10, 2, start=True), one(2, 1, end=True), one(20, 2, end=True)
        )
        assert [outputs(outcome)["sum"].tolist() for outcome in found] == [[1, 0], [10, 0], [3, 0], [30, 0]]


async def test_sequences_wait_for_a_slot_in_the_order_of_their_start(tmp_path: Path) -> None:
    async with serving(tmp_path, configured("direct { }", limit=1)) as asker:
        (first,) = await asker.ask(request("m", 1, 1, start=True))
        waiting = [asker.send(request("m", place, place, start=True, end=True))[0] for place in (2, 3)]
        late, _ = asker.send(request("m", 4, 1))
        await asyncio.wait_for(late, 10)
        assert [answer.done() for answer in waiting] == [False, False]
        assert asker.engine.servable("m").scheduler.pending == 2
        await asker.ask(request("m", 5, 1, end=True))
        assert sums(await asyncio.wait_for(asyncio.gather(*waiting), 10)) == [2, 3]
        assert sums([first, late.result()]) == [1, 5]


async def test_in_the_backlog_a_timeout_rejects_the_whole_sequence(tmp_path: Path) -> None:
    async with serving(tmp_path, configured("direct { }", limit=1)) as asker:
        await asker.ask(request("m", 1, 1, start=True))
        found = await asker.ask(request("m", 2, 2, start=True), request("m", 3, 2, timeout=1000))
        assert [str(outcome) for outcome in found] == ["timeout of the corresponding sequence has been expired"] * 2
        assert all(isinstance(outcome, Unavailable) for outcome in found)
        assert asker.engine.servable("m").statistics.failures[FailureReason.REJECTED] == 2
        assert "must specify the START flag" in str((await asker.ask(request("m", 4, 2)))[0])
        # with a slot a timeout means nothing
        assert sums(await asker.ask(request("m", 2, 1, timeout=1, end=True))) == [3]
        assert sums(await asker.ask(request("m", 4, 2, start=True))) == [4]


async def test_a_sequence_that_is_idle_loses_its_slot(tmp_path: Path) -> None:
    config = configured("direct { }", limit=1, idle_us=2000)
    async with serving(tmp_path, config) as asker:
        await asker.ask(request("m", 1, 1, start=True))
        assert sums(await asker.ask(request("m", 2, 2, start=True, end=True))) == [2]
        (outcome,) = await asker.ask(request("m", 3, 1))
        assert "must specify the START flag" in str(outcome)


async def test_a_cancelled_request_takes_what_waits_of_its_sequence_along(tmp_path: Path) -> None:
    async with serving(tmp_path, configured("direct { }", limit=1)) as asker:
        await asker.ask(request("m", 1, 1, start=True))
        gone, job = asker.send(request("m", 2, 2, start=True))
        behind, _ = asker.send(request("m", 3, 2))
        next_one, _ = asker.send(request("m", 4, 3, start=True))
        assert job is not None
        job.cancel()
        assert isinstance(await asyncio.wait_for(behind, 10), Cancelled)
        assert not gone.done()
        assert "must specify the START flag" in str((await asker.ask(request("m", 4, 2)))[0])
        # a sequence with a slot gives it up
        end, job = asker.send(request("m", 5, 1, end=True))
        assert job is not None
        job.cancel()
        assert sums([await asyncio.wait_for(next_one, 10)]) == [4]
        assert not end.done()
        assert asker.engine.servable("m").statistics.failures[FailureReason.CANCELED] == 3
        assert asker.engine.servable("m").scheduler.pending == 0


async def test_a_file_of_the_model_is_the_first_state(tmp_path: Path) -> None:
    state = STATE.replace(
        "dims: [2]", 'dims: [2] initial_state { data_type: TYPE_FP32 dims: [2] data_file: "begin" name: "n" }'
    )
    file = tmp_path / "m" / "initial_state" / "begin"
    file.parent.mkdir(parents=True)
    file.write_bytes(np.array([100, 0], "f4").tobytes())
    async with serving(tmp_path, configured("direct { }", state=state)) as asker:
        assert sums(await asker.ask(request("m", 1, 1, start=True), request("m", 2, 1))) == [101, 103]
    file.write_bytes(b"123")
    (error,) = await Engine([tmp_path], LoadSettings()).load_all()
    assert "begin has 3 bytes, but 8 are FP32 [2]" in str(error)
    file.unlink()
    (error,) = await Engine([tmp_path], LoadSettings()).load_all()
    assert "begin cannot be read" in str(error)


async def test_a_state_that_grows(tmp_path: Path) -> None:
    """History grows by one element per request, so that sequences of different ages cannot share a batch."""
    state = 'state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: [-1] }'
    config = f"""max_batch_size: 4 sequence_batching {{ {state} }}
        output {{ name: "new" data_type: TYPE_FP32 dims: [-1] }}"""
    onnx_models.save(
        onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx",
        [helper.make_node("Concat", ["old", "x"], ["new"], axis=1)],
        [("x", TensorProto.FLOAT, ("N", 1)), ("old", TensorProto.FLOAT, ("N", "L"))],
        [("new", TensorProto.FLOAT, ("N", "M"))],
    )
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []

    def one(value: float, sequence: int, *, start: bool = False) -> InferRequest:
        x = Tensor("x", DATATYPES["FP32"], np.array([[value]], "f4"))
        return InferRequest("m", "", (x,), parameters={"sequence_id": sequence, "sequence_start": start})

    sent = [one(1, 1, start=True), one(2, 1), one(3, 2, start=True), one(4, 1), one(5, 2), one(6, 1, start=True)]
    found = await Asker(engine).ask(*sent)
    assert [outputs(outcome)["new"].tolist() for outcome in found] == [
        [[0, 1]], [[0, 1, 2]], [[0, 3]], [[0, 1, 2, 4]], [[0, 3, 5]], [[0, 6]],
    ]  # fmt: skip
    engine.close()


async def test_a_request_that_fails_leaves_its_sequence_and_its_neighbours_as_they_were(tmp_path: Path) -> None:
    """The model looks x up in a table of four, and adds what it finds to the state."""
    state = 'state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: [1] }'
    config = f"""max_batch_size: 4 sequence_batching {{ {state} }}
        output {{ name: "new" data_type: TYPE_FP32 dims: [1] }}"""
    table = helper.make_tensor("table", TensorProto.FLOAT, [4], [0, 10, 20, 30])
    onnx_models.save(
        onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx",
        [helper.make_node("Gather", ["table", "x"], ["found"]), helper.make_node("Add", ["found", "old"], ["new"])],
        [("x", TensorProto.INT64, ("N", 1)), ("old", TensorProto.FLOAT, ("N", 1))],
        [("new", TensorProto.FLOAT, ("N", 1))],
        initializers=[table],
    )
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []

    def one(value: int, sequence: int, *, start: bool = False) -> InferRequest:
        x = Tensor("x", DATATYPES["INT64"], np.array([[value]], "i8"))
        return InferRequest("m", "", (x,), parameters={"sequence_id": sequence, "sequence_start": start})

    sent = [one(1, 1, start=True), one(2, 2, start=True), one(99, 1), one(3, 2), one(1, 1)]
    found = await Asker(engine).ask(*sent)
    assert [outputs(found[place])["new"].tolist() for place in (0, 1, 3, 4)] == [[[10]], [[20]], [[50]], [[20]]]
    assert "the model failed" in str(found[2])
    statistics = engine.servable("m").statistics
    assert (statistics.successes, statistics.failures[FailureReason.BACKEND], statistics.inflight) == (4, 1, 0)
    engine.close()


async def test_statistics_count_requests_and_not_empty_rows(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIGS["direct"]) as asker:
        await asker.ask(*[request("m", 1, number, start=True) for number in (1, 2, 3)])
        found = await asker.ask(request("m", 1, 1), request("m", 1, 3))
        assert [int(outputs(outcome)["row"][0, 0]) for outcome in found] == [0, 2]
        statistics = asker.engine.servable("m").statistics
        assert (statistics.executions, statistics.inferences, sorted(statistics.batches)) == (2, 5, [2, 3])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(('"corrid"', '"who"'), "control_input 'who': the model's file has no such tensor", id="no input"),
        pytest.param(
            ("TYPE_UINT64", "TYPE_INT64"), "control_input 'corrid' is TYPE_INT64, but TYPE_UINT64", id="another type"
        ),
        pytest.param(("dims: [2]", "dims: [3]"), "state 'total_in' has shape [-1, 3], but [-1, 2]", id="another shape"),
        pytest.param((STATE, ""), "config.pbtxt leaves out input 'total_in'", id="a state that nobody gives"),
    ],
)
async def test_control_inputs_and_states_must_be_the_files(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    config = CONFIGS["direct"].replace(*change)
    if "leaves out" in sentence:
        config += ' input { name: "x" data_type: TYPE_FP32 dims: [2] }'
    onnx_models.accumulator(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx")
    (error,) = await Engine([tmp_path], LoadSettings()).load_all()
    assert sentence in str(error)


@pytest.mark.feature("C11")
@pytest.mark.parametrize("rows", [1, 3])
async def test_warm_up_samples_are_first_requests(tmp_path: Path, rows: int) -> None:
    more = f"""model_warmup {{ name: "w" batch_size: {rows}
        inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: [2] random_data: true }} }} }}"""
    async with serving(tmp_path, configured("direct { }", more=more)) as asker:
        assert sums(await asker.ask(request("m", 1, 1, start=True))) == [1]


@pytest.mark.feature("E6")
async def test_a_sequence_that_began_before_a_reload_ends_with_the_model_it_began_with(tmp_path: Path) -> None:
    onnx_models.accumulator(onnx_models.configure(tmp_path / "m", CONFIGS["direct"]) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings(), Control(ControlMode.EXPLICIT, ("m",)))
    assert await engine.load_all() == []
    asker = Asker(engine)
    first = engine.servable("m")
    assert sums(await asker.ask(request("m", 1, 7, start=True), request("m", 10, 8, start=True))) == [1, 10]
    onnx_models.configure(tmp_path / "m", CONFIGS["oldest"])
    await engine.load("m")
    assert engine.servable("m") is not first
    assert sums(await asker.ask(request("m", 2, 7), request("m", 5, 9, start=True), request("m", 6, 9))) == [3, 5, 11]
    assert sums(await asker.ask(request("m", 4, 8, start=True))) == [4], "a new start is the new model's"
    assert sums(await asker.ask(request("m", 3, 7, end=True))) == [6]
    assert first.live_sequences == 1, "the other one was begun anew elsewhere; it will be idle for too long"
    await engine.unload("m")
    assert isinstance((await asker.ask(request("m", 1, 9)))[0], Unavailable)
    await until(lambda: not engine._lifecycle._alive, "after an unload nobody waits for sequences")
    engine.close()
