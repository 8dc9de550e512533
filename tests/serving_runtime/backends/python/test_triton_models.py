"""Models written for Triton, run by a real server in worker processes of their own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from serving_runtime import proto
from tests.serving_runtime._support.processes import ServerProcess, command
from tests.serving_runtime.backends.python.python_repository import ask, asked, output, repository, serving, until

CLIENT = """
import sys
import numpy as np
protocol, port = sys.argv[1:]
if protocol == "http":
    import tritonclient.http as v2
else:
    import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{port}")
for width in (4, 100_000):  # in the message, and in shared memory
    given = [np.arange(width, dtype=np.float32), np.full(width, 2, np.float32)]
    inputs = [v2.InferInput(f"INPUT{number}", [width], "FP32") for number in range(2)]
    for tensor, array in zip(inputs, given):
        tensor.set_data_from_numpy(array)
    for _ in range(3):
        answer = client.infer("add_sub", inputs)
        assert (answer.as_numpy("OUTPUT0") == given[0] + 2).all()
        assert (answer.as_numpy("OUTPUT1") == given[0] - 2).all()
    one = client.infer("add_sub", inputs, outputs=[v2.InferRequestedOutput("OUTPUT1")])
    assert one.as_numpy("OUTPUT0") is None and one.as_numpy("OUTPUT1") is not None
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, scratch: Path) -> Iterator[ServerProcess]:
    root = repository(tmp_path_factory.mktemp("models"), "add_sub", "tricks")
    with serving(root, scratch) as process:
        yield process


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tritons_client_asks_tritons_example(served: ServerProcess, protocol: str) -> None:
    port = served.http if protocol == "http" else served.grpc
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, protocol, str(port)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_requests_that_wait_together_come_as_one_batch_of_requests(served: ServerProcess) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda _: output(ask(served, "together")), range(12))
        assert max(int(answer[0]) for answer in answers) > 1


def test_a_request_tells_the_model_what_the_client_said_and_the_answer_carries_parameters(
    served: ServerProcess,
) -> None:
    body = asked("request", sequence_id=7, mine="yes", timeout=1_000_000_000) | {"outputs": [{"name": "text"}]}
    answer = httpx.post(f"{served.url}/v2/models/tricks/infer", json=body, timeout=60)
    assert output(answer) == [str(["the-id", 7, ["text"], 1_000_000_000, json.dumps({"mine": "yes"})])]
    assert answer.json()["parameters"] == {"answered": "yes", "count": 3}


def test_initialize_is_told_what_triton_tells(served: ServerProcess) -> None:
    arguments = dict(eval(output(ask(served, "arguments"))[0]))
    config = json.loads(arguments.pop("model_config"))
    assert config["max_batch_size"] == 8
    assert config["input"][0] == config["input"][0] | {"name": "do", "data_type": "TYPE_STRING", "dims": [1]}
    assert Path(arguments.pop("model_repository")).name == "tricks"
    assert arguments == {
        "model_instance_device_id": "0",
        "model_instance_kind": "CPU",
        "model_instance_name": "tricks_0",
        "model_name": "tricks",
        "model_version": "1",
    }


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        ("fail INTERNAL", 500, "as asked"),
        ("fail INVALID_ARG", 400, "as asked"),
        ("fail NOT_FOUND", 404, "as asked"),
        ("fail UNAVAILABLE", 503, "as asked"),
        ("fail UNSUPPORTED", 501, "as asked"),
        ("fail ALREADY_EXISTS", 400, "as asked"),
        ("raise", 500, "the model failed: ValueError: no reason"),
        ("too few", 500, "execute() must return a list of 1 responses, one per request, found 0"),
        ("wrong", 500, "the model gave output 'numbers' as FP64, but its config says INT64"),
        (
            "misshapen",
            500,
            "the model gave output 'text' with shape [1, 2], but its config says [-1, 1], the first for the rows of "
            "the batch",
        ),
        (
            "flat",
            500,
            "the model gave output 'numbers' with shape [1], but its config says [-1, -1], the first for the rows of "
            "the batch",
        ),
        ("unknown", 500, "the model gave output 'else'; its config has text, numbers"),
    ],
)
def test_a_models_failure_is_told_in_its_own_words(
    served: ServerProcess, text: str, status: int, sentence: str
) -> None:
    answer = ask(served, text)
    assert (answer.status_code, answer.json()["error"]) == (status, sentence)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("fail INVALID_ARG", grpc.StatusCode.INVALID_ARGUMENT),
        ("fail ALREADY_EXISTS", grpc.StatusCode.ALREADY_EXISTS),
        ("fail UNKNOWN", grpc.StatusCode.UNKNOWN),
    ],
)
def test_a_models_failure_has_its_status_over_grpc(served: ServerProcess, text: str, status: grpc.StatusCode) -> None:
    request = proto.ModelInferRequest(model_name="tricks")
    tensor = request.inputs.add(name="do", datatype="BYTES", shape=[1, 1])
    tensor.contents.bytes_contents.append(text.encode())
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError) as failed:
            infer(request.SerializeToString(), timeout=60)
    assert (failed.value.code(), failed.value.details()) == (status, "as asked")


def test_a_request_that_fails_leaves_those_of_its_batch_alone(served: ServerProcess) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda text: ask(served, text), ["fail INTERNAL", "pid", "fail INTERNAL", "pid"]))
    assert [answer.status_code for answer in answers] == [500, 200, 500, 200]


def test_an_output_that_is_asked_for_and_not_given_is_an_error_and_one_that_is_not_is_left_out(
    served: ServerProcess,
) -> None:
    assert [tensor["name"] for tensor in ask(served, "pid").json()["outputs"]] == ["text"]
    body = asked("pid") | {"outputs": [{"name": "numbers"}]}
    answer = httpx.post(f"{served.url}/v2/models/tricks/infer", json=body, timeout=60)
    assert answer.status_code == 500
    assert answer.json()["error"] == "the model's response lacks the requested output 'numbers'"


def test_an_input_that_a_model_keeps_stays_as_it_is(served: ServerProcess) -> None:
    for number in range(1, 6):
        kept = output(ask(served, "keep", [number] * 10_000))
        output(ask(served, "double", [99] * 10_000), "numbers")
    assert kept == ["[1, 2, 3, 4, 5]"]
    output(ask(served, "forget"))


@pytest.mark.parametrize(
    ("text", "end"), [("die SIGKILL", "was ended by SIGKILL"), ("exit 3", "ended with exit code 3")]
)
def test_a_worker_that_ends_fails_what_it_has_and_is_started_again(tmp_path: Path, text: str, end: str) -> None:
    with serving(repository(tmp_path / "models", "tricks"), tmp_path) as served:
        before = output(ask(served, "pid"))
        lost = ask(served, text)
        assert lost.status_code == 500
        assert lost.json()["error"] == f"model 'tricks' version 1: its worker process {end}; it is started again"
        assert output(ask(served, "pid")) != before
        log = (tmp_path / "log").read_text()
        assert "model 'tricks' version 1: its worker process was started again" in log


def test_what_a_model_writes_is_in_the_log_with_its_name(served: ServerProcess, scratch: Path) -> None:
    log = (scratch / "log").read_text()
    assert "INFO serving_runtime.backends.python.process: model 'tricks' version 1: a line on standard output" in log
    assert "model 'tricks' version 1: a line on standard error" in log
    assert "WARNING serving_runtime.backends.python.process: model 'tricks' version 1: a warning of the model" in log


def test_a_client_that_goes_is_told_to_the_model(served: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "state"
    with httpx.Client(timeout=httpx.Timeout(60, read=2)) as client, pytest.raises(httpx.ReadTimeout):
        client.post(f"{served.url}/v2/models/tricks/infer", json=asked(f"wait {file}"))
    assert until(lambda: file.exists() and file.read_text().startswith("cancelled") and file.read_text()) == (
        "cancelled True"
    )


def test_each_instance_is_a_process_and_unloading_leaves_none_nor_memory_nor_descriptors(tmp_path: Path) -> None:
    root = repository(tmp_path / "models", "add_sub", "tricks")
    with serving(root, tmp_path, "--model-control-mode=explicit") as served:
        pid = served.process.pid

        def loaded_and_unloaded() -> None:
            for name in ("add_sub", "tricks"):
                httpx.post(f"{served.url}/v2/repository/models/{name}/load", timeout=60).raise_for_status()
            assert len(workers(pid)) == 3
            output(ask(served, "double", [1] * 100_000), "numbers")
            for name in ("add_sub", "tricks"):
                httpx.post(f"{served.url}/v2/repository/models/{name}/unload", timeout=60).raise_for_status()
            until(lambda: not workers(pid))
            until(lambda: "memfd:fairlead-tensors" not in Path(f"/proc/{pid}/maps").read_text())

        before = descriptors(pid)  # before any load; a leak has some for each worker
        loaded_and_unloaded()
        loaded_and_unloaded()
        until(lambda: descriptors(pid) <= before)
        assert "Cleaning up..." in (tmp_path / "log").read_text()


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_workers_end_with_their_server(tmp_path: Path, how: str) -> None:
    with serving(repository(tmp_path / "models", "add_sub"), tmp_path) as served:
        found = workers(served.process.pid)
        assert len(found) == 2
        getattr(served.process, how)()
        served.process.wait(60)
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in found))
        assert ("Cleaning up..." in (tmp_path / "log").read_text()) == (how == "terminate")


def test_a_server_that_does_not_allow_python_models_refuses_them_by_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "models", "add_sub")
    done = subprocess.run(command(root), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "fairlead-serve: model 'add_sub' version 1: backend 'python' runs code of the model's, "
        "which is not allowed here; allow it by --allow-python-models=true, under fairlead up by "
        "FAIRLEAD_ALLOW_PYTHON_MODELS=true, on Kubernetes by allowPythonModels in the cluster's file"
    )


@pytest.mark.parametrize(
    ("code", "config", "sentence"),
    [
        pytest.param("1 / 0", "", "ZeroDivisionError: division by zero", id="a module that fails"),
        pytest.param("x = 1", "", "model.py has neither a class TritonPythonModel", id="no class"),
        pytest.param("import os; os._exit(7)", "", "its worker process ended with exit code 7", id="it ends"),
        pytest.param(
            "",
            'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "env.tar.gz" } }',
            "parameter 'EXECUTION_ENV_PATH' asks for a Python environment of the model's own",
            id="an environment of its own",
        ),
        pytest.param("", "sequence_batching { }", "sequence_batching of a model in Python", id="sequences"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_in_one_sentence(
    tmp_path: Path, code: str, config: str, sentence: str
) -> None:
    root = repository(tmp_path / "models", "add_sub")
    (root / "add_sub" / "1" / "model.py").write_text(code)
    with (root / "add_sub" / "config.pbtxt").open("a") as file:
        file.write(config)
    done = subprocess.run(
        command(root, "--allow-python-models=true"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("fairlead-serve: model 'add_sub' version 1: ")
    assert sentence in done.stderr.splitlines()[-1]


def test_code_that_comes_with_a_load_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    config = json.dumps({"backend": "python", "input": [], "output": []})
    with serving(tmp_path / "models", tmp_path, "--model-control-mode=explicit") as served:
        parameters = {"config": config, "file:1/model.py": "cHJpbnQoKQ=="}
        url = f"{served.url}/v2/repository/models/m/load"
        answer = httpx.post(url, json={"parameters": parameters}, timeout=60)
        assert answer.status_code == 403
        assert "code runs only where it lies in a model repository" in answer.json()["error"]


def test_inspect_and_profile_run_a_model_only_where_they_are_allowed_to(tmp_path: Path) -> None:
    folder = repository(tmp_path, "add_sub") / "add_sub"

    def told(command: str, *flags: str) -> dict[str, Any]:
        arguments = [sys.executable, "-m", "serving_runtime", command, str(folder), "--json", *flags]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    assert "--allow-python-models" in told("inspect")["error"]
    found = told("inspect", "--allow-python-models")
    assert found["platform"] == "python"
    assert found["inputs"] == [{"name": f"INPUT{n}", "datatype": "FP32", "shape": [-1]} for n in range(2)]
    assert told("profile", "--allow-python-models=true")["memory_bytes"] > 20 << 20  # two interpreters


def workers(pid: int) -> list[int]:
    """Return the worker processes of a server.

    They are found by their parent: the lists of children of its threads miss some while a thread ends.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(folder.name))
    return found


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
