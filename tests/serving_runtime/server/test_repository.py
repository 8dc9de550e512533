"""Models loaded, reloaded and unloaded by clients while a real server answers others."""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
from onnx import TensorProto, helper

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.clients import PRELUDE
from tests.serving_runtime._support.engines import until
from tests.serving_runtime._support.http_bodies import body
from tests.serving_runtime._support.processes import ServerProcess, command, server

EXPLICIT = "--model-control-mode=explicit"

CONTROLLING = """
new = open(sys.argv.pop(), "rb").read()
x = np.ones((1, 4), np.float32)

def width(version=""):
    return client.infer("m", [given("x", "FP32", x)], model_version=version).as_numpy("y").shape[1]

def states():
    index = plain(client.get_model_repository_index())
    index = index["models"] if protocol == "grpc" else index
    return {entry.get("version", ""): (entry["state"], entry.get("reason", "")) for entry in index}

def fails(sentence, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except v2.InferenceServerException as error:
        assert sentence in str(error), error
        return
    raise AssertionError("not refused")

assert states() == {"": ("UNAVAILABLE", "unloaded")}
assert not client.is_model_ready("m")
client.load_model("m")
assert client.is_model_ready("m") and width() == 3
client.load_model("m", config='{"max_batch_size": 2}')
config = plain(client.get_model_config("m"))
assert config.get("config", config)["max_batch_size"] == 2
client.load_model("m", config='{"max_batch_size": 2}', files={"file:7/model.onnx": new})
assert width("7") == 5
fails("has no version '1'", width, "1")
fails("is not an ONNX model", client.load_model, "m", config="{}", files={"file:1/model.onnx": b"nothing"})
fails("is not file:<version>/<file>", client.load_model, "m", config="{}", files={"file:../m": b"nothing"})
fails("no such model", client.load_model, "nobody")
assert width() == 5
client.load_model("m")
assert width("1") == 3
client.unload_model("m", unload_dependents=True)
client.unload_model("m")
fails("it is unloaded", width)
fails("no such model", client.unload_model, "nobody")
client.load_model("m")
assert width() == 3
assert "model_repository(unload_dependents)" in plain(client.get_server_metadata())["extensions"]
"""


def repository(root: Path) -> Path:
    onnx_models.mlp(root / "models" / "m" / "1" / "model.onnx", (4, 3))
    return root / "models"


@pytest.mark.feature("E5", "E6", "E7", "C25")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tritonclient_loads_and_unloads(tmp_path: Path, protocol: str) -> None:
    new = onnx_models.mlp(tmp_path / "new.onnx", (4, 5))
    with server(repository(tmp_path), EXPLICIT, scratch=tmp_path) as process:
        port = process.http if protocol == "http" else process.grpc
        script = CONTROLLING.replace("import sys", "") + "\n"
        prelude = PRELUDE.replace("protocol, port = sys.argv[1:]", "protocol, port = sys.argv[1:3]")
        arguments = [sys.executable, "-c", prelude + script, protocol, str(port), str(new)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.feature("E6")
async def test_no_request_fails_while_models_are_reloaded(tmp_path: Path) -> None:
    """Over both protocols, with requests queueing behind a model of milliseconds at every switch."""
    file = tmp_path / "models" / "m" / "1" / "model.onnx"
    onnx_models.slow(onnx_models.configure(file.parents[1], "max_batch_size: 8") / "1" / "model.onnx", 64, rounds=200)
    message = proto.ModelInferRequest(model_name="m")
    message.inputs.add(name="x", datatype="FP32", shape=[1, 64])
    message.raw_input_contents.append(np.ones((1, 64), "f4").tobytes())
    content, headers = body(64)
    done = asyncio.Event()

    with server(tmp_path / "models", EXPLICIT, "--load-model=m", scratch=tmp_path) as process:
        async with (
            httpx.AsyncClient(base_url=process.url, timeout=30) as client,
            grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel,
        ):
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

            async def by_http() -> int:
                answered = 0
                while not done.is_set():
                    answer = await client.post("/v2/models/m/infer", content=content, headers=headers)
                    assert answer.status_code == 200, answer.text
                    answered += 1
                return answered

            async def by_grpc() -> int:
                answered = 0
                while not done.is_set():
                    await infer(message.SerializeToString())
                    answered += 1
                return answered

            clients = [asyncio.create_task(work()) for work in (by_http, by_grpc) for _ in range(4)]
            for reload in range(1, 6):
                await asyncio.to_thread(onnx_models.slow, file, 64, 200 + reload)
                answer = await client.post("/v2/repository/models/m/load")
                assert answer.status_code == 200, answer.text
            done.set()
            answered = sum(await asyncio.gather(*clients))
        await until(lambda: process.metric("nv_inference_request_success", model="m") == answered, "all are counted")
        assert process.metric("nv_inference_request_failure") == 0


@pytest.mark.feature("E6")
def test_answers_after_a_reload_say_the_new_models_datatypes(tmp_path: Path) -> None:
    """What is remembered of answers to the same request is not told of another model's."""
    file = tmp_path / "models" / "m" / "1" / "model.onnx"

    def cast(kind: int) -> None:
        node = helper.make_node("Cast", ["x"], ["y"], to=kind)
        onnx_models.save(file, [node], [("x", TensorProto.FLOAT, ("N", 4))], [("y", kind, ("N", 4))])

    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    content = head + np.array([1, 2, 3, 4], "f4").tobytes()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    cast(TensorProto.FLOAT)
    with (
        server(tmp_path / "models", EXPLICIT, "--load-model=m", scratch=tmp_path) as process,
        httpx.Client(base_url=process.url) as client,
    ):
        for kind, datatype, dtype in ((TensorProto.FLOAT, "FP32", "f4"), (TensorProto.INT64, "INT64", "<i8")):
            cast(kind)
            assert client.post("/v2/repository/models/m/load").status_code == 200
            for _ in range(3):
                answer = client.post("/v2/models/m/infer", content=content, headers=headers)
                length = int(answer.headers["Inference-Header-Content-Length"])
                assert json.loads(answer.content[:length])["outputs"][0]["datatype"] == datatype
                assert np.frombuffer(answer.content[length:], dtype).tolist() == [1, 2, 3, 4]


@pytest.mark.feature("C25")
async def test_poll_mode_follows_the_repository(tmp_path: Path) -> None:
    root = repository(tmp_path)
    with server(root, "--model-control-mode=poll", "--repository-poll-secs=1", scratch=tmp_path) as process:
        assert not load_allowed(process)
        onnx_models.mlp(root / "new" / "1" / "model.onnx", (4, 3))
        await until(lambda: ready(process, "new"), "the new model is ready")
        (root / "new" / "1" / "model.onnx").unlink()
        (root / "new" / "1").rmdir()
        (root / "new").rmdir()
        await until(lambda: not ready(process, "new"), "it is gone")
        assert ready(process, "m")


def load_allowed(process: ServerProcess) -> bool:
    return httpx.post(f"{process.url}/v2/repository/models/m/load").status_code != 403


def ready(process: ServerProcess, model: str) -> bool:
    return httpx.get(f"{process.url}/v2/models/{model}/ready").status_code == 200


@pytest.mark.feature("E5", "E6", "E7")
def test_requests_that_make_no_sense_are_refused_in_words(tmp_path: Path) -> None:
    root = repository(tmp_path)
    for name, backend, filename in (("broken", "onnxruntime", "model.onnx"), ("coded", "python", "model.py")):
        file = onnx_models.configure(root / name, f'backend: "{backend}"') / "1" / filename
        file.parent.mkdir()
        file.write_text("nothing")
    with server(root, EXPLICIT, scratch=tmp_path) as process:

        def posted(path: str, content: object) -> tuple[int, str]:
            answer = httpx.post(f"{process.url}/v2/repository{path}", json=content)
            return answer.status_code, answer.json()["error"]

        load = "/models/m/load"
        assert posted(load, []) == (400, "the request must be a JSON object")
        assert posted(load, {"parameters": []}) == (400, "the request's 'parameters' must be a JSON object")
        assert "must be 'config' or 'file:" in posted(load, {"parameters": {"other": "x"}})[1]
        assert "and a string" in posted(load, {"parameters": {"config": {}}})[1]
        assert "is not base64" in posted(load, {"parameters": {"config": "{}", "file:1/model.onnx": "?"}})[1]
        lonely = {"file:1/model.onnx": base64.b64encode(b"x").decode()}
        assert "need a 'config' parameter" in posted(load, {"parameters": lonely})[1]
        assert "must be true or false" in posted("/models/m/unload", {"parameters": {"unload_dependents": 1}})[1]
        nothing = {"config": "{}", "file:1/model.onnx": base64.b64encode(b"nothing").decode()}
        assert posted(load, {"parameters": nothing}) == (
            400,
            "model 'm' version 1: model.onnx is not an ONNX model: it is not a protobuf message",
        )
        assert posted(load, {"parameters": {"config": '{"max_batch_size": -1}'}})[0] == 400
        assert posted("/models/broken/load", {})[0] == 500, "a fault of the repository's"
        code, said = posted("/models/coded/load", {})
        assert (code, "--allow-python-models" in said) == (403, True)
        assert posted("/a/models/m/b/load", {})[0] == 404
        assert posted("/here/models/m/load", {})[0] == 501
        assert posted("/here/index", {}) == (404, "there is no repository 'here'; there are models")
        assert posted("/index", {"ready": 1}) == (400, "the request's 'ready' must be true or false")
        index = httpx.post(f"{process.url}/v2/repository/models/index").json()
        assert "m" in [entry["name"] for entry in index]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--load-model=m"], "--load-model needs --model-control-mode=explicit"),
        (["--rate-limit=sometimes"], "argument --rate-limit: invalid choice: 'sometimes'"),
        (["--rate-limit-resource=r:1"], "--rate-limit-resource needs --rate-limit=execution_count"),
        (["--rate-limit=execution_count", "--rate-limit-resource=r:1:0"], "'r:1:0' names a device"),
        (["--rate-limit=execution_count", "--rate-limit-resource=r"], "'r' is not NAME:COUNT"),
        (["--cache-config=redis,host=x"], "cache 'redis' is not supported; supported is local,size=BYTES"),
        (["--cache-config=local,size=0"], "'local,size=0' is not local,size=BYTES with a size >= 1"),
        ([EXPLICIT, "--load-model=*", "--load-model=m"], "--load-model=* loads every model"),
        (["--model-control-mode=always"], "argument --model-control-mode: invalid choice: 'always'"),
        (["--repository-poll-secs=0"], "argument --repository-poll-secs: '0' is not a number >= 1"),
        (["--model-load-thread-count=0"], "argument --model-load-thread-count: '0' is not a number >= 1"),
        (["--model-config-name=a/b"], "argument --model-config-name: 'a/b' is not the name of a file"),
        (
            ["--backend-config=onnxruntime,enable-global-threadpool=2"],
            "enable-global-threadpool must be 0 or 1, found '2'",
        ),
        (["--backend-config=onnxruntime,nothing=2"], "unknown setting; known are default-max-batch-size"),
        ([EXPLICIT, "--load-model=nobody"], "failed to load 'nobody', there is no such model in the repositories"),
    ],
)
def test_flags_that_contradict_each_other_end_the_start(tmp_path: Path, flags: list[str], sentence: str) -> None:
    done = subprocess.run(
        command(repository(tmp_path), *flags), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.feature("C18")
def test_all_models_can_share_the_threads_in_which_they_run(tmp_path: Path) -> None:
    for number in range(6):
        onnx_models.mlp(tmp_path / "models" / f"m{number}" / "1" / "model.onnx", (4, 3))
    threads = {}
    for shared in (0, 1):
        flags = [f"--backend-config=onnxruntime,enable-global-threadpool={shared}"]
        flags += ["--backend-config=onnxruntime,intra_op_thread_count=4"]
        with server(tmp_path / "models", *flags, scratch=tmp_path) as process:
            x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
            for number in range(6):
                answer = httpx.post(f"{process.url}/v2/models/m{number}/infer", json={"inputs": [x]})
                assert answer.status_code == 200, answer.text
            threads[shared] = len(list(Path(f"/proc/{process.process.pid}/task").iterdir()))
    assert threads[0] - threads[1] >= 10, "three threads for each of six models, or three for all"


@pytest.mark.feature("C18", "C24")
def test_a_setting_for_all_backends_is_one_for_the_built_in_one(tmp_path: Path) -> None:
    flags = ["--backend-config=default-max-batch-size=9", "--model-config-name=h100"]
    with server(repository(tmp_path), *flags, scratch=tmp_path) as process:
        assert httpx.get(f"{process.url}/v2/models/m/config").json()["max_batch_size"] == 9
