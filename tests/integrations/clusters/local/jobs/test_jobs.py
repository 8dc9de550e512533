"""Jobs with the real runtime, and with programs that misbehave in its place."""

import json
import os
import subprocess
import sys

import pytest

from common.process_identity import start_ticks
from integrations.clusters.base import Job, JobKind
from integrations.clusters.local.jobs import jobs
from integrations.sandbox import launch
from integrations.sandbox.policy import Launch
from tests.integrations._support.leftovers import left_running


def program(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.fixture
def artifact(cluster):
    return cluster.revision(2, 100).artifact_uri


@pytest.mark.parametrize("kind", [JobKind.INSPECT, JobKind.PROFILE])
def test_runtime_answers(cluster, artifact, kind):
    result = cluster.driver.run(Job(kind, artifact, 60))
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["schema"] == f"fairlead.{kind.value}/v1"


def test_a_tuning_says_how_far_it_is_and_in_the_end_what_it_found(cluster, artifact):
    said = []
    arguments = ("--max-latency-p99-ms=10000", "--budget=3s", "--window=0.2s", "--max-concurrency=4")
    asked = Job(JobKind.TUNE, artifact, 300, arguments=arguments, model_config={"max_batch_size": 4})
    result = cluster.driver.run(asked, said.append)
    assert (result.exit_code, result.message) == (0, "")
    found = json.loads(result.output)
    assert found["baseline"]["batch_size"] == 1  # without a dynamic batcher, as the configuration says
    told = [json.loads(line) for line in said if line]
    assert {line["schema"] for line in told} <= {"fairlead.tune-progress/v1"}


def test_what_a_build_makes_is_handed_over_before_it_is_gone(cluster, artifact):
    handed = {}

    def made(folder):
        handed.update({path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*.onnx")})

    asked = Job(
        JobKind.BUILD, artifact, 300, arguments=("--precision=fp16",), result_id="1", largest_file_bytes=1 << 30
    )
    said = []
    result = cluster.driver.run(asked, said.append, made)
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["made"]["precision"] == "fp16"
    assert list(handed) == ["1/model.onnx"]


def test_a_trial_answers_the_request_that_it_is_given(cluster, artifact):
    x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    asked = Job(JobKind.TRY, artifact, 60, request=json.dumps({"inputs": [x]}).encode(), request_id="1")
    result = cluster.driver.run(asked)
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["answer"]["outputs"]


def test_a_build_that_fails_hands_nothing_over(cluster, artifact):
    asked = Job(JobKind.BUILD, artifact, 300, arguments=("--target=tensorrt",), result_id="1")
    result = cluster.driver.run(asked, None, lambda _folder: pytest.fail("there is nothing"))
    assert result.exit_code == 2
    assert result.message.startswith("a plan is built on the GPU that is to run it, and this process has none: ")


def test_who_is_told_may_end_a_job(artifact, tmp_path):
    def enough(_line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run(
            Job(JobKind.TUNE, artifact, 300),
            tmp_path / "jobs",
            runtime=program("import time; time.sleep(300)"),
            on_stage=enough,
        )
    assert list((tmp_path / "jobs").iterdir()) == []


def test_a_job_has_the_variables_that_it_is_given(artifact, tmp_path):
    code = "import os; print(os.environ['MODEL_TOKENS'], 'PATH' in os.environ)"
    asked = Job(JobKind.TUNE, artifact, 60, env={"MODEL_TOKENS": "7"})
    assert jobs.run(asked, tmp_path / "jobs", runtime=program(code)).output == "7 True\n"


def test_runtime_refuses_what_is_no_model(cluster):
    result = cluster.driver.run(Job(JobKind.INSPECT, cluster.artifact(b"no model").uri, 60))
    assert result.exit_code == 2
    assert result.message == json.loads(result.output)["error"]
    assert "not an ONNX model" in result.message


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "not allowed"])
def test_models_in_python_are_looked_at_only_where_that_is_allowed(tmp_path, allowed):
    code = b"from fairlead_python import FP32\ndef predict(x: FP32[2]) -> FP32[2]:\n    return x"
    artifact = tmp_path / "artifact"
    (artifact / "1").mkdir(parents=True)
    (artifact / "config.pbtxt").write_text('backend: "python"')
    (artifact / "1" / "model.py").write_bytes(code)
    asked = Job(JobKind.PROFILE, artifact.as_uri(), 60)
    result = jobs.run(asked, tmp_path / "jobs", allow_python_models=allowed)
    assert (result.exit_code == 0) is allowed
    assert ("FAIRLEAD_ALLOW_PYTHON_MODELS" in result.message) is not allowed


def test_model_is_laid_out_as_the_runtime_wants_it(artifact, tmp_path):
    code = "import sys, pathlib; print(sys.argv[1:], sorted(p.name for p in pathlib.Path(sys.argv[2]).rglob('*')))"
    result = jobs.run(Job(JobKind.PROFILE, artifact, 30), tmp_path / "jobs", runtime=program(code))
    assert result.output.startswith("['profile', ")
    assert result.output.endswith("'--json'] ['1', 'model.onnx']\n")


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        pytest.param(
            "import sys; sys.exit('first\\nlast words')", 1, "ended with exit code 1: last words", id="an exit code"
        ),
        pytest.param("raise SystemExit(3)", 3, "ended with exit code 3: it printed nothing", id="without a word"),
        pytest.param("import os; os.abort()", -6, "was ended by SIGABRT", id="a crash"),
        pytest.param("print('x' * 9000000)", 1, "ended with exit code 1", id="endless output"),
        pytest.param("bytearray(1 << 50)", 1, "MemoryError", id="more memory than there is"),
        pytest.param(
            'print(\'{"error": "the sentence"}\'); raise SystemExit(2)', 2, "the sentence", id="an error in JSON"
        ),
    ],
)
def test_failures_are_told_in_a_sentence(artifact, tmp_path, code, exit_code, said):
    result = jobs.run(Job(JobKind.INSPECT, artifact, 30), tmp_path / "jobs", runtime=program(code))
    assert result.exit_code == exit_code
    assert said in result.message


def test_job_is_killed_at_its_timeout_with_its_children(artifact, tmp_path, eventually):
    child = "import time; print('up', flush=True); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    result = jobs.run(Job(JobKind.INSPECT, artifact, 5.0), tmp_path / "jobs", runtime=program(code))
    assert (result.exit_code, result.message) == (124, "the inspect of the model did not finish within 5 s")
    assert result.output == "up\n"
    eventually(lambda: not left_running(tmp_path), "the child ended")


def test_missing_artifact_is_told(tmp_path):
    result = jobs.run(Job(JobKind.INSPECT, (tmp_path / "gone").as_uri(), 5), tmp_path / "jobs")
    assert (result.exit_code, result.output) == (1, "")
    assert "is not there" in result.message


def test_program_does_not_start_for_a_parent_that_is_gone():
    told = Launch(parent=1).to_json()
    ended = subprocess.run(
        [sys.executable, "-I", "-S", launch.__file__, told, "echo", "started"], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_what_a_killed_worker_left_goes_with_the_next_job_and_what_runs_stays(artifact, tmp_path):
    left = tmp_path / "jobs" / f"{os.getpid()}-1-abc"
    (left / "model").mkdir(parents=True)
    running = tmp_path / "jobs" / f"{os.getpid()}-{start_ticks(os.getpid())}-def"
    running.mkdir()
    jobs.run(Job(JobKind.INSPECT, artifact, 30), tmp_path / "jobs", runtime=program("print(1)"))
    assert list((tmp_path / "jobs").iterdir()) == [running]
