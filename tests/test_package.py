"""`make package`: what it builds, installed as users install it, and beside nothing but what it says it needs."""

import json
import os
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests._support.installed import environment, run, surroundings
from tests.registry._support.model_files import linear_model

__all__ = ["linear_model"]

ROOT = Path(__file__).parents[1]
READY_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what `make package` builds; what it needs is there already."""
    folder = tmp_path_factory.mktemp("dist")
    tools = f"BIN={Path(sys.executable).parent}"
    command = ["make", "--old-file=.venv/.base", "package", tools, f"PACKAGES={folder}"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("fairlead-*-py3-none-any.whl")
    return found


def test_both_hold_the_command_line_and_the_runtime_alone(built: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(next(built.glob("fairlead-*.tar.gz"))) as archive:
        in_source = {name.partition("/")[2].removeprefix("platform/") for name in archive.getnames()}

    assert {name.partition("/")[0] for name in in_wheel} == {"fairlead_cli", "serving_runtime"}
    assert in_wheel < in_source
    beside = {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"}
    assert in_source - in_wheel <= beside


def test_the_command_line_runs_with_what_the_package_needs(wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "environment", wheel)

    said = run([commands / "python", "-c", "import fairlead_cli; print(fairlead_cli.__file__)"], tmp_path).stdout
    assert said.startswith(f"{tmp_path}/environment/lib/")
    assert run([commands / "fairlead", "--version"], tmp_path).stdout == f"fairlead {wheel.name.split('-')[1]}\n"
    answer = run([commands / "fairlead", "models", "list", "--url", "http://127.0.0.1:9"], tmp_path)
    assert (answer.returncode, answer.stderr.partition(" (")[0]) == (5, "no answer from http://127.0.0.1:9"), answer
    answer = run([commands / "fairlead", "up"], tmp_path)
    assert (answer.returncode, answer.stderr.startswith("the control plane is not installed here")) == (1, True), answer
    answer = run([commands / "fairlead-serve", "--model-repository", tmp_path], tmp_path)
    said = "fairlead-serve: the Python package numpy is not installed; run: pip install 'fairlead[serving-cpu]'\n"
    assert (answer.returncode, answer.stderr) == (1, said)


def test_a_model_is_served_by_the_installed_runtime_and_answers(
    wheel: Path, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    commands = environment(tmp_path / "environment", wheel, extras="[serving-cpu]")
    model = tmp_path / "models" / "linear" / "1" / "model.onnx"
    model.parent.mkdir(parents=True)
    model.write_bytes(linear_model())

    told = run([commands / "fairlead-serve", "inspect", tmp_path / "models" / "linear", "--json"], tmp_path)
    assert [each["name"] for each in json.loads(told.stdout)["inputs"]] == ["x"], told
    with ExitStack() as stack:
        ports = tmp_path / "ports"
        flags = ["--model-repository", tmp_path / "models", "--http-address", "127.0.0.1", "--port-file", ports]
        flags += ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--grpc-address", "127.0.0.1"]
        log = stack.enter_context((tmp_path / "log").open("w"))
        server = subprocess.Popen(
            [commands / "fairlead-serve", *flags], env=surroundings(tmp_path), cwd=tmp_path, stdout=log, stderr=log
        )
        stack.callback(server.wait, READY_WITHIN_S)
        stack.callback(server.terminate)
        deadline = time.monotonic() + READY_WITHIN_S
        while not ports.exists():
            assert server.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)
        address = f"http://127.0.0.1:{json.loads(ports.read_text())['http']}/v2/models/linear/infer"
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 0, 0, 0]}
        request = urllib.request.Request(address, json.dumps({"inputs": [tensor]}).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            (output,) = json.load(answer)["outputs"]
        imported = Path(f"/proc/{server.pid}/maps").read_text()
    assert (output["name"], output["shape"], len(output["data"])) == ("y", [1, 3], 3)
    assert os.fspath(ROOT / "serving_runtime") not in imported
    assert server.returncode == 0
