"""Triton's extensions with its own clients, over both protocols, and as curl sees them."""

import subprocess
import sys
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.clients import PRELUDE
from tests.serving_runtime._support.processes import ServerProcess, server

LABELLED = """
max_batch_size: 4
output { name: "y" data_type: TYPE_FP32 dims: 3 label_filename: "labels.txt" }
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of `labelled` (x [-1,3] -> y, the same), `text`, `flat` and `sums`, with shared memory allowed."""
    root = tmp_path_factory.mktemp("repository")
    labelled = onnx_models.configure(root / "labelled", LABELLED)
    (labelled / "labels.txt").write_text("cat\ndog\nowl\n")
    onnx_models.identity(labelled / "1" / "model.onnx", shape=("N", 3))
    onnx_models.identity(root / "text" / "1" / "model.onnx", TensorProto.STRING, ("N", 1))
    onnx_models.identity(onnx_models.configure(root / "flat", "") / "1" / "model.onnx", TensorProto.INT32, ("N",))
    onnx_models.add(root / "sums" / "1" / "model.onnx")
    with server(root, "--allow-client-shm", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


SHARED_MEMORY = """
from multiprocessing.shared_memory import SharedMemory
assert "system_shared_memory" in plain(client.get_server_metadata())["extensions"]

def regions(answer):
    return answer if protocol == "http" else list(answer.get("regions", {}).values())

memory = SharedMemory(create=True, size=4096)
try:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    memory.buf[256:280] = x.tobytes()
    client.register_system_shared_memory("mine", "/" + memory.name, 2048, 128)
    told = regions(plain(client.get_system_shared_memory_status()))
    assert len(told) == 1 and told[0]["name"] == "mine" and int(told[0]["offset"]) == 128, told
    tensor = v2.InferInput("x", [2, 3], "FP32")
    tensor.set_shared_memory("mine", 24, offset=128)
    output = v2.InferRequestedOutput("y")
    output.set_shared_memory("mine", 24, offset=512)
    answer = client.infer("labelled", [tensor], outputs=[output])
    assert np.array_equal(np.frombuffer(memory.buf[640:664], np.float32).reshape(2, 3), x)
    told = plain(answer.get_response())["outputs"][0]
    assert "data" not in told and ("parameters" in told) == (protocol == "grpc"), told
    assert client.infer("labelled", [tensor]).as_numpy("y").tolist() == x.tolist()

    tensor.set_shared_memory("mine", 24, offset=2048 - 16)
    assert "beyond the 2048 bytes" in refused(400, "labelled", [tensor])
    tensor.set_shared_memory("mine", 20, offset=128)
    assert "unexpected byte size 20, expecting 24" in refused(400, "labelled", [tensor])
    tensor.set_shared_memory("yours", 24)
    assert "'yours' is not registered" in refused(404, "labelled", [tensor])
    output.set_shared_memory("mine", 20)
    given_x = [given("x", "FP32", x)]
    assert "cannot hold an output of 24" in refused(400, "labelled", given_x, outputs=[output])

    for name, key, sentence in (("mine", memory.name, "already registered"), ("other", "../etc", "plain name")):
        try:
            client.register_system_shared_memory(name, key, 8)
            raise AssertionError("registered")
        except v2.InferenceServerException as error:
            assert sentence in error.message(), error
    client.unregister_system_shared_memory("mine")
    assert regions(plain(client.get_system_shared_memory_status())) == []
    client.unregister_system_shared_memory()
    assert regions(plain(client.get_cuda_shared_memory_status())) == []
    client.unregister_cuda_shared_memory()
    try:
        client.register_cuda_shared_memory("gpu", b"aGFuZGxl", 0, 64)
        raise AssertionError("answered")
    except v2.InferenceServerException as error:
        assert "CUDA shared memory is not supported" in error.message(), error
finally:
    memory.close()
    memory.unlink()
"""

CLASSIFICATION = """
x = np.array([[0.5, 2, 1], [3, 3, 4]], np.float32)
def classes(count, **form):
    outputs = [v2.InferRequestedOutput("y", class_count=count, **form)]
    answer = client.infer("labelled", [given("x", "FP32", x)], outputs=outputs)
    assert plain(answer.get_response())["outputs"][0]["datatype"] == "BYTES"
    return [[value if isinstance(value, str) else value.decode() for value in row] for row in answer.as_numpy("y")]

expected = [["2.000000:1:dog", "1.000000:2:owl"], ["4.000000:2:owl", "3.000000:0:cat"]]
assert classes(2) == expected
if protocol == "http":
    assert classes(2, binary_data=False) == expected
assert [len(row) for row in classes(9)] == [3, 3]
text = given("x", "BYTES", np.array([["a"]], dtype=object))
assert "has no classes" in refused(400, "text", [text], outputs=[v2.InferRequestedOutput("y", class_count=1)])
assert "classification" in plain(client.get_server_metadata())["extensions"]
"""

COMPRESSION = """
x = np.zeros((4, 3), np.float32)
for coding in ("gzip", "deflate"):
    forms = {"request_compression_algorithm": coding, "response_compression_algorithm": coding}
    for binary in (True, False):
        outputs = [v2.InferRequestedOutput("y", binary_data=binary)]
        found = client.infer("labelled", [given("x", "FP32", x, binary_data=binary)], outputs=outputs, **forms)
        assert found.as_numpy("y").tolist() == x.tolist()
big = np.array([["a" * 200_000]], dtype=object)
found = client.infer("text", [given("x", "BYTES", big)], **forms).as_numpy("y")
assert found.tolist() == [[b"a" * 200_000]]
"""


@pytest.mark.parametrize(
    ("protocol", "steps"),
    [
        pytest.param("http", SHARED_MEMORY, id="http shared memory", marks=pytest.mark.feature("E12")),
        pytest.param("grpc", SHARED_MEMORY, id="grpc shared memory", marks=pytest.mark.feature("E12")),
        pytest.param("http", CLASSIFICATION, id="http classification", marks=pytest.mark.feature("E4")),
        pytest.param("grpc", CLASSIFICATION, id="grpc classification", marks=pytest.mark.feature("E4")),
        pytest.param("http", COMPRESSION, id="http compression", marks=pytest.mark.feature("P16")),
    ],
)
def test_the_extension_works_with_tritons_client(extended: ServerProcess, protocol: str, steps: str) -> None:
    port = extended.http if protocol == "http" else extended.grpc
    arguments = [sys.executable, "-c", PRELUDE + CODES + steps, protocol, str(port)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


CODES = """
wanted_code = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND"} if protocol == "grpc" else None
def refused(code, *args, _refused=refused, **kwargs):
    return _refused(wanted_code[code] if wanted_code else str(code), *args, **kwargs)
"""


@pytest.mark.feature("E3")
def test_a_request_of_raw_bytes(extended: ServerProcess) -> None:
    def answer(model: str, body: bytes) -> tuple[dict[str, object], bytes]:
        headers = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}
        found = httpx.post(f"{extended.url}/v2/models/{model}/infer", content=body, headers=headers)
        length = int(found.headers.get("Inference-Header-Content-Length", len(found.content)))
        return httpx.Response(found.status_code, content=found.content[:length]).json(), found.content[length:]

    x = np.array([1, 2, 3], "f4").tobytes()
    content, tail = answer("labelled", x)
    assert content["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": 12}}
    ]
    assert tail == x
    assert answer("text", b"plain text")[1] == b"\x0a\x00\x00\x00plain text"
    assert answer("sums", bytes(32))[0]["error"] == (
        "a request of raw bytes to model 'sums' is not possible: it has 2 inputs; send JSON before the bytes"
    )
    assert "unexpected byte size 11" in str(answer("labelled", x[:-1])[0]["error"])


@pytest.mark.feature("E13")
def test_cuda_shared_memory_is_refused_by_name(extended: ServerProcess) -> None:
    url = f"{extended.url}/v2/cudasharedmemory"
    assert httpx.get(f"{url}/status").json() == []
    assert httpx.post(f"{url}/unregister").status_code == 200
    for method, path in (("GET", "status"), ("POST", "register"), ("POST", "unregister")):
        found = httpx.request(method, f"{url}/region/r/{path}")
        assert found.status_code == 501
        assert "CUDA shared memory is not supported" in found.json()["error"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "a string 'key'"),
        ({"key": "k"}, "'byte_size' must be a number of bytes"),
        ({"key": "k", "byte_size": -1}, "'byte_size' must be a number of bytes"),
        ({"key": "k", "byte_size": 1, "offset": "0"}, "'offset' must be a number of bytes"),
    ],
)
def test_a_wrong_registration_is_told(extended: ServerProcess, body: dict[str, object], sentence: str) -> None:
    found = httpx.post(f"{extended.url}/v2/systemsharedmemory/region/r/register", json=body)
    assert found.status_code == 400
    assert sentence in found.json()["error"]
