"""Every public method of tritonclient's clients, found by introspection, is called against a real server and answers.

The clients run in processes of their own: they bring protobuf messages of our names. A method that a newer client
gains fails `test_every_public_method_answers` until it is called below.
"""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

PRELUDE = """
import asyncio, base64, functools, inspect, json, sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
import numpy as np
kind, address, file = sys.argv[1:]
http, aio = kind.startswith("http"), kind.endswith("aio")
if kind == "http":
    import tritonclient.http as v2
elif kind == "grpc":
    import tritonclient.grpc as v2
elif kind == "http.aio":
    import tritonclient.http.aio as v2
else:
    import tritonclient.grpc.aio as v2

called = set()

class Told:
    '''A client that notes which of its methods were called, and waits for those that are coroutines.'''

    def __init__(self, client, loop):
        self._client, self._loop = client, loop

    def __getattr__(self, name):
        called.add(name)
        found = getattr(self._client, name)
        if not callable(found):
            return found
        def call(*args, **kwargs):
            answer = found(*args, **kwargs)
            return self._loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer
        return call

async def made():
    return v2.InferenceServerClient(address)

loop = asyncio.new_event_loop()
client = Told(loop.run_until_complete(made()) if aio else v2.InferenceServerClient(address), loop)

def plain(answer):
    if http or isinstance(answer, dict):
        return answer
    from google.protobuf.json_format import MessageToDict
    return MessageToDict(answer, preserving_proto_field_name=True)

def regions(answer):
    return answer if http else list(answer.get("regions", {}).values())

x = np.arange(16, dtype=np.float32).reshape(2, 8) / 10
tensor = v2.InferInput("x", [1, 1], "FP32")
tensor.set_shape([2, 8])
tensor.set_data_from_numpy(x)
assert (tensor.name(), tensor.datatype(), tensor.shape()) == ("x", "FP32", [2, 8])
wanted = v2.InferRequestedOutput("y")
assert wanted.name() == "y"
"""

ASKING = """
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("mlp")
assert plain(client.get_server_metadata())["name"] == "fairlead"
assert plain(client.get_model_metadata("mlp"))["inputs"][0]["name"] == "x"
config = plain(client.get_model_config("mlp"))
assert config.get("config", config)["max_batch_size"] == 8

result = client.infer("mlp", [tensor], outputs=[wanted], request_id="1")
y = result.as_numpy("y")
assert y.shape == (2, 3) and result.as_numpy("nothing") is None
assert plain(result.get_response())["id"] == "1" and plain(result.get_output("y"))["datatype"] == "FP32"
stats = plain(client.get_inference_statistics("mlp"))["model_stats"][0]
assert int(stats["inference_count"]) >= 2

index = plain(client.get_model_repository_index())
names = {entry["name"]: entry for entry in (index if http else index["models"])}
assert names["mlp"]["state"] == "READY"
client.load_model("mlp")
override = {"max_batch_size": 2, "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [8]}]}
client.load_model("mlp", config=json.dumps({**override, "backend": "onnxruntime"}))
config = plain(client.get_model_config("mlp"))
assert config.get("config", config)["max_batch_size"] == 2
content = Path(file).read_bytes()
client.load_model("brought", config=json.dumps({"backend": "onnxruntime"}), files={"file:1/model.onnx": content})
assert client.is_model_ready("brought", "1")
client.unload_model("brought")
assert not client.is_model_ready("brought")
client.load_model("mlp")

memory = SharedMemory(create=True, size=64 + 24)
try:
    memory.buf[:64] = x.tobytes()
    client.register_system_shared_memory("mine", "/" + memory.name, 88)
    assert [region["name"] for region in regions(plain(client.get_system_shared_memory_status()))] == ["mine"]
    tensor.set_shared_memory("mine", 64)
    wanted.set_shared_memory("mine", 24, offset=64)
    client.infer("mlp", [tensor], outputs=[wanted])
    np.testing.assert_array_equal(np.frombuffer(memory.buf[64:88], np.float32).reshape(2, 3), y)
    wanted.unset_shared_memory()
    tensor.set_data_from_numpy(x)
    client.unregister_system_shared_memory("mine")
finally:
    memory.close()
    memory.unlink()
assert regions(plain(client.get_cuda_shared_memory_status())) == []
client.unregister_cuda_shared_memory()
try:
    client.register_cuda_shared_memory("gpu", base64.b64encode(b"handle"), 0, 64)
    raise AssertionError("registered")
except v2.InferenceServerException as error:
    assert "CUDA shared memory is not supported" in error.message(), error

settings = plain(client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "7"}))
assert "7" in str(settings), settings
assert "7" in str(plain(client.get_trace_settings()))
assert "9" in str(plain(client.update_trace_settings("mlp", {"trace_rate": "9"})))
assert "9" in str(plain(client.get_trace_settings("mlp")))
client.update_trace_settings(settings={"trace_level": ["OFF"]})
assert "1" in str(plain(client.update_log_settings({"log_verbose_level": 1})))
assert "log_verbose_level" in str(plain(client.get_log_settings()))
client.update_log_settings({"log_verbose_level": 0})

class Plugin(v2.InferenceServerClientPlugin if hasattr(v2, "InferenceServerClientPlugin") else object):
    def __call__(self, request):
        request.headers["x-extra"] = "1"

client.register_plugin(Plugin())
assert client.plugin() is not None
assert client.is_server_live()
client.unregister_plugin()
"""

BODIES = """
body, json_size = client.generate_request_body([tensor], outputs=[wanted])
import urllib.request
request = urllib.request.Request(f"http://{address}/v2/models/mlp/infer", body)
if json_size is not None:
    request.add_header("Inference-Header-Content-Length", str(json_size))
with urllib.request.urlopen(request) as answer:
    length = answer.headers["Inference-Header-Content-Length"]
    parsed = client.parse_response_body(answer.read(), header_length=int(length) if length else None)
np.testing.assert_array_equal(parsed.as_numpy("y"), y)
"""

PARTICULAR = {
    "http": """
assert client.async_infer("mlp", [tensor]).get_result().as_numpy("y").shape == (2, 3)
"""
    + BODIES,
    "http.aio": BODIES,
    "grpc": """
import queue
answers = queue.Queue()
client.async_infer("mlp", [tensor], callback=lambda result, error: answers.put(error or result))
assert answers.get(timeout=30).as_numpy("y").shape == (2, 3)
client.start_stream(lambda result, error: answers.put(error or result))
client.async_stream_infer("mlp", [tensor], request_id="s")
assert answers.get(timeout=30).get_response().id == "s"
client.stop_stream()
""",
    "grpc.aio": """
async def asked():
    yield {"model_name": "mlp", "inputs": [tensor], "request_id": "s"}

async def streamed():
    called.add("stream_infer")
    async for result, error in client._client.stream_infer(asked()):
        assert error is None and result.get_response().id == "s"
        return
    raise AssertionError("no answer")

loop.run_until_complete(streamed())
""",
}

ENDING = """
client.close()
public = {name for name in dir(v2.InferenceServerClient) if not name.startswith("_")}
assert public <= called, f"never called: {sorted(public - called)}"
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    flags = ("--allow-client-shm=true", "--model-control-mode=explicit", "--load-model=*")
    with server(root, *flags, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


@pytest.mark.feature("E6", "E7", "E10", "E11", "E12")
@pytest.mark.parametrize("kind", list(PARTICULAR))
def test_every_public_method_answers(
    target: ServerProcess, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    port = target.http if kind.startswith("http") else target.grpc
    file = onnx_models.mlp(tmp_path_factory.mktemp("brought") / "model.onnx")
    script = PRELUDE + ASKING + PARTICULAR[kind] + ENDING
    arguments = [sys.executable, "-c", script, kind, f"127.0.0.1:{port}", str(file)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
