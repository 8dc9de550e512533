"""What goes on working inside the sandbox of a replica: processes, memory, compilers and devices."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from onnx import TensorProto

from integrations.clusters.local.confinement import REPLICA_LIMITS, confined, private
from integrations.clusters.local.runtime import RUNTIME, environment
from integrations.sandbox import ability, launch
from integrations.sandbox.command import command
from integrations.sandbox.policy import Mode, NetworkAccess
from serving_runtime.shared import landlock
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess
from tests.serving_runtime.backends.python.python_repository import repository

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the sandbox is made of is Linux's")

START_S = 60.0
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextmanager
def replica(scratch: Path, *flags: str, network: NetworkAccess = NetworkAccess.LISTEN) -> Iterator[ServerProcess]:
    """Run a server of `scratch/models` as the agent runs a replica."""
    models, own = scratch / "models", scratch / "own"
    own.mkdir()
    runtime = [*RUNTIME, *flags]
    addresses = [f"--{name}-{rest}" for name in ("http", "grpc", "metrics") for rest in ("address=127.0.0.1", "port=0")]
    program = [*runtime, f"--model-repository={models}", *addresses, f"--port-file={own / 'ports'}"]
    sandbox = confined(runtime, read=[models], write=[own], network=network)
    inside = command(program, sandbox=sandbox, limits=REPLICA_LIMITS, folder=str(own))
    env = {**environment({}, is_code=network is NetworkAccess.ALL), **private(own)}
    with (
        (scratch / "log").open("wb") as log,
        subprocess.Popen(inside, stdout=log, stderr=subprocess.STDOUT, text=True, env=env) as process,
    ):
        try:
            until(lambda: process.poll() is not None or (own / "ports").exists(), "it starts")
            assert process.poll() is None, said(scratch)
            yield ServerProcess(process, **json.loads((own / "ports").read_text()))
        finally:
            process.kill()


def said(scratch: Path) -> str:
    return (scratch / "log").read_text()


def until(look: Any, what: str) -> None:
    deadline = time.monotonic() + START_S
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def infer(process: ServerProcess, model: str, *inputs: dict[str, Any]) -> list[Any]:
    """Return the data of the first output."""
    answer = httpx.post(f"{process.url}/v2/models/{model}/infer", json={"inputs": list(inputs)}, timeout=60)
    assert answer.status_code == 200, answer.text
    data: list[Any] = answer.json()["outputs"][0]["data"]
    return data


def run(scratch: Path, code: str, *arguments: str) -> Any:
    """Return what a Python program prints as JSON, run inside."""
    files, own = scratch / "files", scratch / "own"
    files.mkdir(exist_ok=True)
    own.mkdir()
    program = [sys.executable, "-I", "-c", code, *arguments]
    sandbox = confined(program, read=[files], write=[own], network=NetworkAccess.LISTEN)
    inside = command(program, sandbox=sandbox, limits=REPLICA_LIMITS, folder=str(own))
    env = {**environment({}, is_code=False), **private(own)}
    done = subprocess.run(inside, capture_output=True, text=True, check=False, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def namespaces() -> None:
    """Skip where users may make no namespaces: sockets in files are closed then."""
    lacks = ability.shortfall(Mode.BEST)
    if "namespaces" in lacks:
        pytest.skip(lacks)


def test_models_in_python_answer_and_ask_others(tmp_path: Path) -> None:
    """In workers, to which large tensors go through memory that is shared."""
    repository(tmp_path / "models", "add_sub", "asking", "countdown")
    with replica(tmp_path, "--allow-python-models=true", network=NetworkAccess.ALL) as process:
        width = 300_000
        one = {"datatype": "FP32", "shape": [width], "data": [1.0] * width}
        assert infer(process, "add_sub", {"name": "INPUT0", **one}, {"name": "INPUT1", **one}) == [2.0] * width
        large = float((1 + np.arange(100_000) % 64).sum())
        for how, expected in (("one", "6.0"), ("large", str(large)), ("stream", "[[2], [1], [0]]")):
            assert infer(process, "asking", {"name": "how", "datatype": "BYTES", "shape": [1], "data": [how]}) == [
                expected
            ]


@pytest.mark.usefixtures("namespaces")
def test_several_workers_answer(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "models" / "digits" / "1" / "model.onnx")
    with replica(tmp_path, "--workers=2") as process:
        row = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
        for _ in range(20):
            assert infer(process, "digits", row) == [1, 2, 3, 4]
        children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text().split()
        assert len(children) >= 2


@pytest.mark.parametrize("allowed", [True, False])
def test_shared_memory_of_clients_is_reached_with_its_flag_only(tmp_path: Path, allowed: bool) -> None:
    onnx_models.identity(tmp_path / "models" / "digits" / "1" / "model.onnx", TensorProto.FLOAT, ("N", 4))
    memory = SharedMemory(create=True, size=64)
    try:
        memory.buf[:16] = np.array([1, 2, 3, 4], "f4").tobytes()
        with replica(tmp_path, f"--allow-client-shm={str(allowed).lower()}") as process:
            asked = {"key": f"/{memory.name}", "offset": 0, "byte_size": 64}
            answer = httpx.post(f"{process.url}/v2/systemsharedmemory/region/r/register", json=asked)
            assert (answer.status_code == 200) is allowed, answer.text
            seen = Path(f"/proc/{process.process.pid}/root/dev/shm", memory.name).exists()
            assert seen is allowed or "namespaces" in ability.shortfall(Mode.BEST)
            if allowed:
                where = {"shared_memory_region": "r", "shared_memory_offset": 0, "shared_memory_byte_size": 16}
                tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "parameters": where}
                assert infer(process, "digits", tensor) == [1, 2, 3, 4]
    finally:
        memory.close()
        memory.unlink()


@pytest.mark.skipif(
    not _HUGE_PAGES.is_file() or "[madvise]" not in _HUGE_PAGES.read_text(),
    reason="this kernel gives huge pages to all who want them, or to none",
)
def test_large_memory_is_marked_for_huge_pages(tmp_path: Path) -> None:
    """By glibc, which reads below /sys how large they are; GLIBC_TUNABLES is as in the runtime's images."""
    code = """
import json
kept = bytearray(64 << 20)
print(json.dumps(any("hg" in line.split() for line in open("/proc/self/smaps") if line.startswith("VmFlags"))))
"""
    assert run(tmp_path, code) is True


def test_the_reader_of_json_is_compiled(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    onnx_models.identity(tmp_path / "models" / "wide" / "1" / "model.onnx", shape=("N", "M"))
    with replica(tmp_path) as process:
        numbers = b",".join([b"1.2345678"] * 500_000)
        body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,500000],"data":[%s]}]}' % numbers

        def compiled() -> bool:
            answer = httpx.post(f"{process.url}/v2/models/wide/infer", content=body, timeout=60)
            assert answer.status_code == 200, answer.text[:200]
            return "could not be compiled" in said(tmp_path) or "read by compiled code" in said(tmp_path)

        until(compiled, "it is compiled")
    assert "could not be compiled" not in said(tmp_path)


def test_functions_that_numba_keeps_are_kept_in_the_own_folder(tmp_path: Path) -> None:
    """A model's folder cannot be written to, beside whose files numba would keep them."""
    pytest.importorskip("numba")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "compiled.py").write_text(
        "import numba\n\n@numba.njit(cache=True)\ndef double(x):\n    return x * 2\n"
    )
    code = """
import json, sys
sys.path.insert(0, sys.argv[1])
import compiled
print(json.dumps(compiled.double(21)))
"""
    assert run(tmp_path, code, str(tmp_path / "files")) == 42
    assert list((tmp_path / "own").rglob("*.nbc"))


def test_openvino_keeps_compiled_models_in_the_own_folder(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed: pip install 'fairlead[openvino]'")
    onnx_models.mlp(tmp_path / "files" / "model.onnx")
    code = """
import json, os, sys
import openvino
core = openvino.Core()
core.set_property({"CACHE_DIR": os.environ["HOME"] + "/cache"})
for _ in range(2):
    found = core.compile_model(sys.argv[1], "CPU")
print(json.dumps(found.get_property("LOADED_FROM_CACHE")))
"""
    assert run(tmp_path, code, str(tmp_path / "files" / "model.onnx")) is True
    assert list((tmp_path / "own" / "cache").iterdir())


NODES = ("nvidia0", "nvidia7", "nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
OF_OTHERS = ("dri", "accel", "accel0", "kfd")


def test_devices_of_accelerators_are_reached_and_no_others() -> None:
    """MIG's capabilities are files of the folder nvidia-caps, NVLink's of nvidia-caps-imex-channels."""
    wanted = (*NODES, "nvidia-caps-imex-channels", *OF_OTHERS)
    others = ("sda", "mem", "kvm", "tty", "fuse", "net", "vhost-net", "snd", "input", "null")
    assert set(launch.accelerators((*wanted, *others))) == {f"/dev/{name}" for name in wanted}


def test_a_folder_of_devices_is_read_and_written_with_all_in_it_and_takes_no_more(tmp_path: Path) -> None:
    """As the capabilities of MIG, tried on files: a test makes no devices."""
    caps = tmp_path / "nvidia-caps"
    caps.mkdir()
    for name in ("nvidia-cap1", "nvidia-cap2", "other"):
        (caps / name if name != "other" else tmp_path / name).write_text("x")
    code = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[1])
from serving_runtime.shared import landlock
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
landlock.restrict(read=[], listed=[], write=[], devices=[sys.argv[2]], connect=False)
def tried(path, mode):
    try:
        open(path, mode).close()
    except OSError as error:
        return type(error).__name__
    return "ok"
caps = sys.argv[2]
print(json.dumps([tried(caps + "/nvidia-cap1", "r+"), tried(caps + "/nvidia-cap2", "r+"),
                  tried(caps + "/made", "w"), tried(caps + "/../other", "r")]))
"""
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    platform = str(Path(launch.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, platform, str(caps)], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == ["ok", "ok", "PermissionError", "PermissionError"]
