"""One request is answered by the command as a server answers it, with the times that took."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

X = {"name": "x", "shape": [1, 8], "datatype": "FP32"}
ROW = {"inputs": [{**X, "data": [0.1] * 8}], "id": "seven"}


def tried(model: Path, request: object, *flags: str) -> tuple[int, dict[str, Any], list[str]]:
    """Return the exit code, what was printed, and the stages that were told."""
    file = model.parent / "request.json"
    file.write_text(request if isinstance(request, str) else json.dumps(request))
    return run(model, f"--request={file}", *flags)


def run(model: Path, *flags: str) -> tuple[int, dict[str, Any], list[str]]:
    command = [sys.executable, "-m", "serving_runtime", "try", str(model), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    stages = [json.loads(line)["stage"] for line in done.stderr.splitlines() if "try-progress" in line]
    return done.returncode, json.loads(done.stdout), stages


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    return root


def test_the_answer_and_the_refusal_are_those_of_a_server(repository: Path, tmp_path: Path) -> None:
    wrong = {"inputs": [{**X, "shape": [1, 7], "data": [0.1] * 7}]}
    with server(repository, scratch=tmp_path) as target, httpx.Client() as client:
        infer = f"{target.url}/v2/models/mlp/infer"
        answered = client.post(infer, json=ROW).json()
        refused = client.post(infer, json=wrong)
        garbage = client.post(infer, content=b"{")
    code, found, stages = tried(repository / "mlp", ROW)
    assert (code, found["status"], found["answer"]) == (0, 200, answered)
    assert stages == ["loading the model", "answering"]
    assert found["load_ms"] > 0
    assert found["runs"] == 5
    assert 0 < found["infer_ms"] <= 5 * found["first_ms"]
    code, found, _ = tried(repository / "mlp", wrong)
    assert (code, found["status"], found["error"]) == (3, refused.status_code, refused.json()["error"])
    assert "answer" not in found
    code, found, _ = tried(repository / "mlp", "{")
    assert (code, found["status"], found["error"]) == (3, garbage.status_code, garbage.json()["error"])


def test_a_model_that_cannot_be_loaded_is_told(repository: Path) -> None:
    (repository / "mlp" / "1" / "model.onnx").write_bytes(b"garbage")
    code, found, stages = tried(repository / "mlp", ROW)
    assert (code, stages) == (2, ["loading the model"])
    assert found.keys() == {"schema", "error"}
    assert "not an ONNX model" in found["error"]


def test_an_answer_that_is_too_large_is_left_out_and_its_time_told(repository: Path) -> None:
    code, found, _ = tried(repository / "mlp", ROW, "--max-answer-bytes=10")
    assert (code, found["status"]) == (0, 200)
    assert "more than the 10 of --max-answer-bytes" in found["error"]
    assert found["infer_ms"] > 0


def test_a_binary_answer_is_left_out(repository: Path) -> None:
    code, found, _ = tried(repository / "mlp", {**ROW, "parameters": {"binary_data_output": True}})
    assert (code, found["status"]) == (0, 200)
    assert "ask without binary_data" in found["error"]


def test_labels_come_beside_the_answer(tmp_path: Path) -> None:
    output = 'output { name: "y" label_filename: "labels.txt" }'
    model = onnx_models.configure(tmp_path / "mlp", f"max_batch_size: 8 {output}")
    onnx_models.mlp(model / "1" / "model.onnx")
    (model / "labels.txt").write_text("cat\ndog\n")
    code, found, _ = tried(model, ROW)
    assert (code, found["labels"]) == (0, {"y": ["cat", "dog"]})


def test_a_request_of_a_sequence_is_answered_once(tmp_path: Path) -> None:
    model = onnx_models.configure(tmp_path / "mlp", "max_batch_size: 8 sequence_batching { }")
    onnx_models.mlp(model / "1" / "model.onnx")
    start = {"sequence_id": 1, "sequence_start": True}
    code, found, _ = tried(model, {**ROW, "parameters": start})
    assert (code, found["runs"]) == (0, 1)
    assert found["first_ms"] == found["infer_ms"]
