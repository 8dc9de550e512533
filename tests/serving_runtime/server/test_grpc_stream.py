"""ModelStreamInfer against a real server: order, errors, finals, slow readers, and clients that go."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

OWN = Path(__file__).parents[1] / "own_backends"
SERVICE = "/inference.GRPCInferenceService"
MEBI = 1 << 20


def configure(root: Path, name: str, **parameters: object) -> None:
    """Make a model of the `repeat` backend: it answers n with 0, 1 ... n-1."""
    lines = ['backend: "repeat" model_transaction_policy { decoupled: true }']
    lines += [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
    (onnx_models.configure(root / name, "\n".join(lines)) / "1").mkdir()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which models write when they are told to stop."""
    return tmp_path_factory.mktemp("told") / "told"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[ServerProcess]:
    """repeat, failing (in place of response 2), wide (responses of 1 MiB), mlp."""
    root = tmp_path_factory.mktemp("repository")
    configure(root, "repeat", told=told)
    configure(root, "failing", fail_at=2)
    configure(root, "wide", told=told, width=MEBI // 4)
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8") / "1" / "model.onnx")
    with server(root, f"--backend-directory={OWN}", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


@pytest.fixture
async def channel(served: ServerProcess) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{served.grpc}", options=options) as found:
        yield found


def stream(channel: grpc.aio.Channel, **options: Any) -> Any:
    method = channel.stream_stream(
        f"{SERVICE}/ModelStreamInfer",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=proto.message("inference.ModelStreamInferResponse").FromString,
    )
    return method(**options)


def asked(model: str, count: int, request_id: str = "", **parameters: bool) -> Any:
    request = proto.ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="x", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([count], "<i4").tobytes())
    for key, value in parameters.items():
        request.parameters[key].bool_param = value
    return request


def mlp(value: float, request_id: str) -> Any:
    request = proto.ModelInferRequest(model_name="mlp", id=request_id)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 8])
    request.raw_input_contents.append(np.full((1, 8), value, "<f4").tobytes())
    return request


async def read(call: Any) -> Any:
    return await asyncio.wait_for(call.read(), 20)


async def answers(channel: grpc.aio.Channel, *requests: Any) -> list[Any]:
    """Return all responses to some requests on a stream of their own."""
    call = stream(channel)
    for request in requests:
        await call.write(request)
    await call.done_writing()
    return await read_all(call)


async def read_all(call: Any) -> list[Any]:
    async with asyncio.timeout(20):
        return [response async for response in call]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)


def number(response: Any) -> int:
    return int(np.frombuffer(response.infer_response.raw_output_contents[0], "<i4")[0])


def final(response: Any) -> bool:
    return bool(response.infer_response.parameters["triton_final_response"].bool_param)


TRITONCLIENT = """
import faulthandler, queue, sys
import numpy as np
faulthandler.dump_traceback_later(50, exit=True)  # says where it waits
import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
found = queue.Queue()
client.start_stream(lambda result, error: found.put((result, error)))

def ask(model, count, **options):
    x = v2.InferInput("x", [1], "INT32")
    x.set_data_from_numpy(np.array([count], np.int32))
    client.async_stream_infer(model, [x], **options)

def answers(count):
    return [found.get(timeout=20) for _ in range(count)]

ask("repeat", 3, request_id="a", enable_empty_final_response=True)
*responses, (last, _) = answers(4)
assert [int(result.as_numpy("y")[0]) for result, _ in responses] == [0, 1, 2]
finals = [result.get_response().parameters["triton_final_response"].bool_param for result, _ in responses]
assert finals == [False] * 3
assert last.get_response().parameters["triton_final_response"].bool_param and last.get_response().id == "a"
assert not last.get_response().outputs
ask("nobody", 1)
ask("failing", 9)
(_, unknown), _, _, (_, failed) = answers(4)
assert "unknown model 'nobody'" in str(unknown) and "the model failed at 2" in str(failed), (unknown, failed)
ask("repeat", 1)
assert int(answers(1)[0][0].as_numpy("y")[0]) == 0
client.stop_stream()
assert found.empty()
"""


@pytest.mark.feature("P13", "E18")
def test_tritonclient_streams_from_a_decoupled_model(served: ServerProcess) -> None:
    arguments = [sys.executable, "-c", TRITONCLIENT, str(served.grpc)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.feature("E18")
async def test_an_empty_last_response_is_sent_to_those_only_who_ask_for_it(channel: grpc.aio.Channel) -> None:
    told = await answers(channel, asked("repeat", 2, triton_enable_empty_final_response=True))
    assert [final(response) for response in told] == [False, False, True]
    assert not told[-1].infer_response.outputs
    unset = await answers(channel, asked("repeat", 2))
    assert [final(response) for response in unset] == [False, False]
    assert await answers(channel, asked("repeat", 0)) == []


@pytest.mark.feature("P13")
async def test_models_that_answer_once_answer_in_the_order_of_their_requests(channel: grpc.aio.Channel) -> None:
    found = await answers(channel, *[mlp(value, str(value)) for value in range(200)])
    assert [response.infer_response.id for response in found] == [str(value) for value in range(200)]
    assert all(final(response) for response in found)


async def test_an_unfinished_decoupled_request_holds_nobody_up(channel: grpc.aio.Channel) -> None:
    call = stream(channel)
    await call.write(asked("repeat", -1, "endless"))
    await read(call)
    await call.write(mlp(1, "quick"))
    while (await read(call)).infer_response.id != "quick":
        pass
    call.cancel()


@pytest.mark.feature("P13", "P11")
async def test_an_error_is_told_in_the_response_and_the_stream_goes_on(channel: grpc.aio.Channel) -> None:
    broken = mlp(2, "broken")
    broken.inputs[0].shape[:] = [1, 7]
    first, second, third = await answers(channel, mlp(1, "a"), broken, mlp(3, "c"))
    assert (first.error_message, third.error_message) == ("", "")
    assert "input 'x' got unexpected byte size 32" in second.error_message
    assert (second.infer_response.id, second.infer_response.model_name) == ("broken", "mlp")
    assert final(second)


@pytest.mark.feature("P13", "P11")
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param(asked("nobody", 1), grpc.StatusCode.NOT_FOUND, id="unknown model"),
        pytest.param(asked("failing", 9), grpc.StatusCode.INTERNAL, id="a model that fails"),
    ],
)
async def test_the_first_error_ends_the_call_where_the_client_wants_that(
    channel: grpc.aio.Channel, request_: Any, code: grpc.StatusCode
) -> None:
    call = stream(channel, metadata=(("triton_grpc_error", "true"),))
    await call.write(request_)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(call)
    assert caught.value.code() is code


async def responses_sent(channel: grpc.aio.Channel, model: str) -> int:
    ask = channel.unary_unary(
        f"{SERVICE}/ModelStatistics",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=proto.message("inference.ModelStatisticsResponse").FromString,
    )
    found = await ask(proto.message("inference.ModelStatisticsRequest")(name=model))
    return sum(place.success.count for place in found.model_stats[0].response_stats.values())


@pytest.mark.feature("P13")
async def test_a_model_waits_for_a_client_that_does_not_read(channel: grpc.aio.Channel, served: ServerProcess) -> None:
    before = await responses_sent(channel, "wide")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{served.grpc}") as other:
        call = stream(other)
        await call.write(asked("wide", -1))
        sent, same = before, 0
        async with asyncio.timeout(30):
            while same < 30 or sent == before:  # a model that does not wait never comes to rest
                now = await responses_sent(channel, "wide")
                sent, same = now, same + 1 if now == sent else 0
        assert sent - before < 32  # of 1 MiB each, what sockets hold included
        for expected in range(sent - before + 10):
            assert number(await read(call)) == expected
        call.cancel()


def stops(told: Path) -> int:
    return len(told.read_text().splitlines()) if told.exists() else 0


async def stopped(told: Path, before: int) -> None:
    async def condition() -> bool:
        return stops(told) == before + 1

    await until(condition)


@pytest.mark.feature("E20")
async def test_a_cancelled_call_stops_its_model(channel: grpc.aio.Channel, told: Path) -> None:
    before = stops(told)
    call = stream(channel)
    await call.write(asked("repeat", -1))
    await read(call)
    call.cancel()
    await stopped(told, before)


@pytest.mark.feature("E20")
async def test_a_deadline_stops_the_model(channel: grpc.aio.Channel, told: Path) -> None:
    before = stops(told)
    call = stream(channel, timeout=3)
    await call.write(asked("repeat", -1))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(call)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await stopped(told, before)


LOST = """
import sys, grpc
channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")
call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")(iter([bytes.fromhex(sys.argv[2])]))
next(call)
print("answered", flush=True)
for _ in call:
    pass
"""


@pytest.mark.feature("E20")
async def test_a_lost_connection_stops_the_model(served: ServerProcess, told: Path) -> None:
    before = stops(told)
    arguments = [sys.executable, "-c", LOST, str(served.grpc), asked("repeat", -1).SerializeToString().hex()]
    client = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    assert client.stdout is not None
    assert await asyncio.wait_for(client.stdout.readline(), 20) == b"answered\n"
    client.kill()
    await client.wait()
    await stopped(told, before)


@pytest.mark.feature("E20")
async def test_requests_of_a_cancelled_stream_leave_the_queue(
    channel: grpc.aio.Channel, served: ServerProcess, told: Path
) -> None:
    before = stops(told)
    call = stream(channel)
    for _ in range(5):
        await call.write(asked("repeat", -1))
    await read(call)

    async def pending(count: int) -> None:
        async def condition() -> bool:
            return await asyncio.to_thread(served.metric, "nv_inference_pending_request_count", model="repeat") == count

        await until(condition)

    await pending(4)
    call.cancel()
    await pending(0)
    await stopped(told, before)


@pytest.mark.feature("P11")
async def test_bytes_that_are_no_message_end_their_call_and_stop_its_models(
    channel: grpc.aio.Channel, told: Path
) -> None:
    before = stops(told)
    call = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")()
    await call.write(asked("repeat", -1).SerializeToString())
    await call.write(b"\xff\xff\xff")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(call)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "the request's 3 bytes are no ModelInferRequest"
    await stopped(told, before)
    for method in (f"{SERVICE}/ModelInfer", "/grpc.health.v1.Health/Check"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method)(b"\xff", timeout=20)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_server_that_stops_finishes_what_streams_have_asked_for(tmp_path: Path) -> None:
    configure(tmp_path / "repository", "repeat")
    with server(tmp_path / "repository", f"--backend-directory={OWN}", scratch=tmp_path) as process:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
            call = stream(channel)
            await call.write(asked("repeat", 3000))
            first = await read(call)
            process.terminate()
            numbers = [number(first)] + [number(await read(call)) for _ in range(2999)]
            assert numbers == list(range(3000))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await read(call)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert caught.value.details() == "the server is stopping"
        assert await asyncio.to_thread(process.process.wait, 20) == 0


@pytest.mark.feature("C20")
def test_calls_with_one_answer_refuse_a_decoupled_model(served: ServerProcess) -> None:
    content = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1], "data": [1]}]}
    answer = httpx.post(f"{served.url}/v2/models/repeat/infer", json=content)
    assert answer.status_code == 501
    assert "has a decoupled transaction policy" in answer.json()["error"]
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"{SERVICE}/ModelInfer")(asked("repeat", 1).SerializeToString(), timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


WATCH = """
import sys, threading, grpc
channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")
silent = iter(threading.Event().wait, True)
idle = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")(silent)
unknown = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\\x0a\\x04else")
assert next(unknown) == b"\\x08\\x03"
watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
assert next(watch) == b"\\x08\\x01"
print("watching", flush=True)
assert next(watch) == b"\\x08\\x02"
try:
    next(watch)
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.UNAVAILABLE
"""


@pytest.mark.feature("P12")
def test_those_who_watch_are_told_that_the_server_stops_and_hold_it_up_no_longer(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "repository" / "mlp" / "1" / "model.onnx")
    with server(tmp_path / "repository", scratch=tmp_path) as process:
        arguments = [sys.executable, "-c", WATCH, str(process.grpc)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "watching\n"
            process.terminate()
            assert process.process.wait(20) == 0  # before the exit timeout of 30 s
            assert client.wait(20) == 0
