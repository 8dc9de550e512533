"""`tune`, with real servers and a real load."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from serving_runtime.config import text
from serving_runtime.tuning.cores import usable_cores
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

QUICK = ("--budget=3s", "--window=0.1s", "--max-batch-size=8", "--max-concurrency=8", "--max-instances=2")


def tuned(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "serving_runtime", "tune", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_what_it_chose_is_written_and_can_be_served(tmp_path: Path) -> None:
    model = onnx_models.configure(tmp_path / "models" / "m", "max_batch_size: 4")
    onnx_models.mlp(model / "1" / "model.onnx")
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    files = [f"--{name}={tmp_path / name}" for name in ("plot", "output", "config")]
    done = tuned(str(model), "--max-latency-p99-ms=10000", *QUICK, *files)
    assert done.returncode == 0, done.stderr
    assert "requests/s" in done.stdout
    assert "chosen" in done.stdout
    assert done.stderr.count("at once: ") >= 1
    document = json.loads((tmp_path / "output").read_text())
    assert document["schema"] == "fairlead.tune/v1"
    assert document["failed"] == []
    assert document["machine"]["cpus"] == usable_cores()
    chosen, points = document["chosen"], document["points"]
    assert chosen["p99_ms"] <= 10_000
    assert chosen["requests_per_s"] > 0
    assert document["baseline"]["batch_size"] == 1
    assert document["measurements"] == sum(point["repeats"] for point in points)
    assert all(point in points for point in document["frontier"])
    ElementTree.fromstring((tmp_path / "plot").read_text())
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before

    (model / "config.pbtxt").write_text((tmp_path / "config").read_text())
    written = text.read(model / "config.pbtxt", "m")
    assert (written.instance_group[0].count if written.instance_group else 1) == chosen["instances"]
    assert written.max_batch_size == max(4, chosen["batch_size"])
    with server(tmp_path / "models", scratch=tmp_path) as process:
        assert process.url


def test_progress_and_answer_are_json_where_that_is_asked_for(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "m" / "1" / "model.onnx")
    done = tuned(str(tmp_path / "m"), "--max-latency-p99-ms=10000", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stderr.splitlines()]
    assert {step["schema"] for step in steps} == {"fairlead.tune-progress/v1"}
    assert [step["measurements"] for step in steps] == list(range(1, len(steps) + 1))
    assert steps[0]["best"]["batch_size"] == 4
    assert json.loads(done.stdout)["measurements"] == len(steps)


def test_a_limit_that_nothing_keeps_ends_with_3_and_says_how_near_it_came(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx")
    done = tuned(str(tmp_path / "m"), "--max-latency-p99-ms=0.000001", *QUICK, f"--config={tmp_path / 'config'}")
    assert done.returncode == 3
    assert "no setting keeps p99 under 1e-06 ms; the lowest is " in done.stdout
    assert not (tmp_path / "config").exists()


def test_a_model_that_takes_no_made_up_request_is_one_sentence_and_2(tmp_path: Path) -> None:
    onnx_models.save(
        tmp_path / "m" / "1" / "model.onnx",
        [onnx_models.helper.make_node("Gather", ["table", "x"], ["y"])],
        [("x", onnx_models.TensorProto.INT64, ("N", 1))],
        [("y", onnx_models.TensorProto.FLOAT, ("N", 1, 2))],
        initializers=[onnx_models.numpy_helper.from_array(onnx_models.np.zeros((0, 2), "f4"), "table")],
    )
    done = tuned(str(tmp_path / "m"), "--max-latency-p99-ms=100", *QUICK, "--json")
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["error"].startswith("model 'm' as it is cannot be measured: ")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("made", "arguments", "sentence"),
    [
        ("nothing", (), "no such folder"),
        ("model", ("--shape=z:4",), "there is no input 'z' to give a shape to; the model has x"),
    ],
)
def test_what_cannot_be_tuned_is_one_sentence_and_2(
    tmp_path: Path, made: str, arguments: tuple[str, ...], sentence: str
) -> None:
    if made == "model":
        onnx_models.identity(tmp_path / "m" / "1" / "model.onnx")
    done = tuned(str(tmp_path / "m"), "--max-latency-p99-ms=100", *QUICK, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


@pytest.mark.parametrize("flag", ["--budget=5", "--budget=-1s", "--max-latency-p99-ms=0", "--shape=x", "--rows=0"])
def test_a_wrong_flag_is_refused_before_anything_starts(tmp_path: Path, flag: str) -> None:
    done = tuned(str(tmp_path), "--max-latency-p99-ms=5", flag)
    assert done.returncode == 1
    assert flag.partition("=")[0] in done.stderr


def test_cores_are_those_of_the_control_groups_quota(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    everything = usable_cores(tmp_path / "absent")
    for content, cores in (("max 100000", everything), ("100000 100000", 1), ("50000 100000", 1), ("junk", everything)):
        quota.write_text(content)
        assert usable_cores(quota) == cores
