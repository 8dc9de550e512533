"""What was published as flaws of Triton, KServe and Keras, tried on a server that allows all that it can allow."""

import json
import os
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import grpc
import httpx
import pytest

from serving_runtime import proto
from serving_runtime.engine.memory.shared_memory import FOLDER
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

RAISES = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        raise pb_utils.TritonModelException("of the model's own")
"""
RAISES_CONFIG = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: -1 }
output { name: "y" data_type: TYPE_FP32 dims: -1 }
"""
ONE = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}


@pytest.fixture(scope="module")
def lax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with `digits` and a model in Python: control calls, shared memory and code are allowed."""
    scratch = tmp_path_factory.mktemp("lax")
    repository = scratch / "models"
    onnx_models.identity(repository / "digits" / "1" / "model.onnx")
    raising = onnx_models.configure(repository / "raising", RAISES_CONFIG)
    (raising / "1").mkdir()
    (raising / "1" / "model.py").write_text(RAISES)
    flags = ["--model-control-mode=explicit", "--load-model=*", "--allow-client-shm", "--allow-python-models"]
    with server(repository, *flags, f"--log-file={scratch / 'log'}", "--log-verbose=1", scratch=scratch) as process:
        yield process


def answers(process: ServerProcess) -> None:
    """See that the server goes on."""
    answer = httpx.post(f"{process.url}/v2/models/digits/infer", json={"inputs": [ONE]}, timeout=30)
    assert answer.json()["outputs"][0]["data"] == ONE["data"]


def targets(pid: int) -> set[Path]:
    """Return what the descriptors of a process lead to."""
    return {fd.readlink() for fd in Path(f"/proc/{pid}/fd").iterdir()}


@pytest.mark.cve("CVE-2023-31036")
@pytest.mark.parametrize("path", ["../../evil.py", "1/../../evil.py", "/tmp/evil.py", "1//tmp/evil", "..", "1/..", ""])
def test_a_load_writes_no_file_outside_of_its_model(lax: ServerProcess, tmp_path: Path, path: str) -> None:
    content = b64encode(b"evil").decode()
    asked = {"config": "{}", f"file:{path}": content, f"file:1/../{os.path.relpath(tmp_path, '/')}/evil": content}
    answer = httpx.post(f"{lax.url}/v2/repository/models/mine/load", json={"parameters": asked}, timeout=30)
    assert answer.status_code == 400
    assert "is not file:<version>/<file>" in answer.json()["error"]
    assert not list(tmp_path.iterdir())
    answers(lax)


@pytest.mark.cve("CVE-2023-31036")
@pytest.mark.parametrize("name", ["..%2Fmine", "%2E%2E", "..%2F..%2Ftmp%2Fmine", "%2Ftmp%2Fmine", "a%00b", "..%5Cmine"])
def test_a_model_is_loaded_by_no_path(lax: ServerProcess, name: str) -> None:
    asked = {"config": "{}", "file:1/model.onnx": b64encode(b"evil").decode()}
    answer = httpx.post(f"{lax.url}/v2/repository/models/{name}/load", json={"parameters": asked}, timeout=30)
    assert answer.status_code in (400, 404)
    answers(lax)


@pytest.mark.cve("CVE-2024-0087")
def test_a_client_does_not_choose_the_log_file(lax: ServerProcess, tmp_path: Path) -> None:
    target = tmp_path / ".bashrc"
    answer = httpx.post(f"{lax.url}/v2/logging", json={"log_file": str(target), "log_verbose_level": 1})
    assert answer.status_code == 400
    assert "chosen by --log-file" in answer.json()["error"]
    assert not target.exists()


@pytest.mark.cve("CVE-2024-0095")
def test_a_client_forges_no_line_of_the_log(lax: ServerProcess, tmp_path: Path) -> None:
    forged = "E0101 00:00:00.000000 1 forged.py:1] all is well"
    for before in ("\n", "\r\n", "\x1b[2J"):
        name = f"a{before}{forged}"
        httpx.post(f"{lax.url}/v2/models/{quote(name)}/infer", json={"inputs": [ONE]}, timeout=30)
        with socket.create_connection(("127.0.0.1", lax.http), timeout=30) as client:
            client.sendall(f"GET /v2/models/{name} HTTP/1.1\r\nHost: x\r\nx-request-id: {name}\r\n\r\n".encode())
            assert client.recv(65536)
        message = proto.ModelInferRequest(model_name=name, id=name).SerializeToString()
        with grpc.insecure_channel(f"127.0.0.1:{lax.grpc}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            with pytest.raises(grpc.RpcError):
                infer(message, timeout=30)
    answers(lax)
    (log,) = {target for target in targets(lax.process.pid) if target.name == "log"}
    content = log.read_bytes()
    assert b"forged.py" in content, "the name is in the log"
    assert not [line for line in content.replace(b"\r", b"\n").splitlines() if line.startswith(forged.encode())]
    assert b"\x1b" not in content


OFFSETS = [
    (0, 1 << 62),
    (1 << 62, 1 << 62),
    ((1 << 63) - 1, 64),
    ((1 << 64) - 64, 128),
    (64, 1),
    (-64, 64),
    (0, 1 << 70),
]


@pytest.mark.cve("CVE-2024-0088")
@pytest.mark.parametrize(("offset", "size"), OFFSETS)
def test_a_region_ends_where_its_object_does(lax: ServerProcess, offset: int, size: int) -> None:
    mine = FOLDER / f"fairlead-test-{os.getpid()}"
    mine.write_bytes(bytes(64))
    try:
        asked = {"key": f"/{mine.name}", "offset": offset, "byte_size": size}
        answer = httpx.post(f"{lax.url}/v2/systemsharedmemory/region/r/register", json=asked)
        assert answer.status_code == 400, answer.text
        whole = {"key": f"/{mine.name}", "offset": 0, "byte_size": 64}
        assert httpx.post(f"{lax.url}/v2/systemsharedmemory/region/r/register", json=whole).status_code == 200
        where = {"shared_memory_region": "r", "shared_memory_offset": offset, "shared_memory_byte_size": size}
        tensor = {"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": where}
        assert httpx.post(f"{lax.url}/v2/models/digits/infer", json={"inputs": [tensor]}).status_code == 400
        output = {"name": "y", "parameters": where}
        answer = httpx.post(f"{lax.url}/v2/models/digits/infer", json={"inputs": [ONE], "outputs": [output]})
        assert answer.status_code == 400
    finally:
        httpx.post(f"{lax.url}/v2/systemsharedmemory/unregister", json={})
        mine.unlink()
    answers(lax)


@pytest.mark.cve("CVE-2025-23319", "CVE-2025-23320", "CVE-2025-23334")
def test_memory_of_models_in_python_has_no_name_that_a_client_could_register(lax: ServerProcess) -> None:
    """Their chain: an error says the name of such memory, the name is registered, and the memory is written."""
    for shape in ([1], [1 << 20]):
        tensor = {"name": "x", "shape": shape, "datatype": "FP32", "data": [0] * shape[0]}
        answer = httpx.post(f"{lax.url}/v2/models/raising/infer", json={"inputs": [tensor]}, timeout=60)
        assert answer.status_code >= 400
        said = answer.json()["error"]
        assert "of the model's own" in said
        assert not any(word in said for word in ("shm", "memfd", "fairlead-tensors", "/proc", "/dev"))
    children = Path(f"/proc/{lax.process.pid}/task/{lax.process.pid}/children").read_text().split()
    pids = [lax.process.pid, *map(int, children)]
    assert not [target for pid in pids for target in targets(pid) if target.is_relative_to(FOLDER)]
    descriptors = [fd for pid in pids for fd in Path(f"/proc/{pid}/fd").iterdir()]
    memory = [str(fd) for fd in descriptors if fd.readlink().name.startswith("memfd:")]
    assert memory, "tensors of models in Python go through such memory"
    for key in (*memory, "memfd:fairlead-tensors", "fairlead-tensors", f"../../proc/{pids[-1]}/mem"):
        asked = {"key": key, "offset": 0, "byte_size": 1}
        answer = httpx.post(f"{lax.url}/v2/systemsharedmemory/region/theirs/register", json=asked)
        assert answer.status_code == 400, key


@pytest.mark.cve("CVE-2025-23310", "CVE-2025-23311")
@pytest.mark.parametrize(
    "path", ["/v2/models/digits/infer", "/v2/repository/index", "/v2/repository/models/digits/load", "/v2/logging"]
)
def test_a_body_in_very_many_pieces_ends_no_server(lax: ServerProcess, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", lax.http), timeout=60) as client:
        client.sendall(head + b"1\r\n \r\n" * 500_000 + b"2\r\n{}\r\n0\r\n\r\n")
        answer = client.recv(65536)
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4"))
    answers(lax)


@pytest.mark.cve("CVE-2025-33201")
def test_a_body_larger_than_may_be_is_refused_and_not_read(lax: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", lax.http), timeout=60) as client:
        client.sendall(
            f"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 62}\r\n\r\n".encode()
        )
        assert client.recv(65536).startswith(b"HTTP/1.1 413")
    answers(lax)


@pytest.mark.cve("CVE-2026-24146")
def test_very_many_outputs_are_refused(lax: ServerProcess) -> None:
    asked = {"inputs": [ONE], "outputs": [{"name": "y", "parameters": {"binary_data": True}}] * 300_000}
    answer = httpx.post(f"{lax.url}/v2/models/digits/infer", json=asked, timeout=60)
    assert answer.status_code == 400
    answers(lax)


@pytest.mark.cve("CVE-2026-24173")
@pytest.mark.parametrize(
    "shape", [[1 << 32, 1 << 32], [1 << 62, 4], [1 << 63, 2], [(1 << 64) + 1, 4], [-1, -4], [0, 1 << 63], [1] * 4096]
)
def test_a_shape_that_overflows_is_refused(lax: ServerProcess, shape: list[int]) -> None:
    for data in ({"data": [1, 2, 3, 4]}, {"parameters": {"binary_data_size": 16}}):
        tensor = {"name": "x", "shape": shape, "datatype": "FP32", **data}
        content = json.dumps({"inputs": [tensor]}).encode()
        headers = {"Inference-Header-Content-Length": str(len(content))} if "parameters" in data else {}
        answer = httpx.post(
            f"{lax.url}/v2/models/digits/infer", content=content + bytes(16 if headers else 0), headers=headers
        )
        assert answer.status_code == 400, answer.text
    answers(lax)


@pytest.mark.cve("CVE-2024-3660", "CVE-2025-1550", "CVE-2025-8747", "CVE-2025-9905", "CVE-2025-9906")
@pytest.mark.parametrize("name", ["model.keras", "model.h5", "model.hdf5"])
def test_keras_is_no_format_that_is_opened(lax: ServerProcess, name: str) -> None:
    """A Lambda layer, or a configuration that names any module, is code; nothing here reads either."""
    asked = {"config": json.dumps({"backend": "keras"}), f"file:1/{name}": b64encode(b"PK\3\4").decode()}
    answer = httpx.post(f"{lax.url}/v2/repository/models/layers/load", json={"parameters": asked}, timeout=30)
    assert answer.status_code == 400
    assert "backend 'keras'" in answer.json()["error"]
    answers(lax)
