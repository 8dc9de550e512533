"""Many models checked by one process: the same answers as by a process for each, and what has to have its own."""

import json
import sys
from pathlib import Path

import pytest

from integrations.clusters.base import ChecksMany, Job, JobKind, JobResult, Resources
from integrations.clusters.local.driver import LocalDriver
from integrations.clusters.local.jobs.checker import checker
from serving_runtime.shared import landlock
from tests.integrations._support.leftovers import left_running
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.skipif(
    landlock.version() < landlock.FILES or any(Path("/dev").glob("nvidia*")),
    reason="without Landlock, or with GPUs, each model is checked by a process of its own",
)


def model(folder: Path, name: str, make=onnx_models.mlp, config: str = "") -> str:
    """Return the URI of an artifact with one model."""
    make(folder / name / "1" / "model.onnx")
    if config:
        (folder / name / "config.pbtxt").write_text(config)
    return (folder / name).as_uri()


def inspect(uri: str, **others) -> Job:
    return Job(JobKind.INSPECT, uri, 60.0, **others)


def without_times(result: JobResult) -> object:
    found = json.loads(result.output)
    return found.keys(), found["max_batch_size"], found["device"]


def test_answers_are_those_of_a_process_for_each(tmp_path):
    driver = LocalDriver(tmp_path / "cluster")
    assert isinstance(driver, ChecksMany)
    sound = model(tmp_path, "sound")
    configured = model(tmp_path, "configured", config="max_batch_size: 7\nversion_policy: { all {} }\n")
    refused = model(tmp_path, "refused", config="max_batch_size: many\n")
    with driver.checker(60.0) as found:
        for uri in (sound, configured, refused, sound):
            own, alone = found.run(inspect(uri)), driver.run(inspect(uri))
            assert own.exit_code == alone.exit_code
            assert json.loads(own.output) == json.loads(alone.output)
        own, alone = (runs.run(Job(JobKind.PROFILE, sound, 60.0)) for runs in (found, driver))
        assert without_times(own) == without_times(alone)
        figures = [json.loads(each.output)["memory_bytes"] for each in (own, alone)]
        assert max(figures) - min(figures) < 8 << 20
        assert [each.name for each in (tmp_path / "cluster").rglob("repositories/*")] == ["4"], "one model at a time"
    assert list((tmp_path / "cluster" / "jobs").glob("*")) == []


def test_what_is_no_graph_of_this_machine_has_a_process_of_its_own(tmp_path):
    booster = tmp_path / "booster" / "1" / "model.txt"
    booster.parent.mkdir(parents=True)
    booster.write_text("tree\n")
    sound = model(tmp_path, "sound")
    elsewhere = model(tmp_path, "elsewhere", config='backend: "openvino"\n')
    with checker(tmp_path / "jobs", 60.0) as found:
        assert found.run(inspect(booster.parents[1].as_uri())) is None
        assert found.run(inspect(elsewhere)) is None
        for uri in ((tmp_path / "gone").as_uri(), "s3://elsewhere/model"):
            assert found.run(inspect(uri)) is None
        assert found.run(inspect(sound, resources=Resources(accelerator="nvidia.com/gpu"))) is None
        assert found.run(Job(JobKind.TUNE, sound, 60.0)) is None
        assert found.runs
        assert found.run(inspect(sound)).exit_code == 0


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("", id="it ends"),
        pytest.param("print('hello')", id="another greeting"),
        pytest.param("print('x' * 100_000)", id="no end of its greeting"),
    ],
)
def test_a_program_that_is_no_checker_is_not_used(tmp_path, program):
    with checker(tmp_path / "jobs", 60.0, program=(sys.executable, "-I", "-c", program)) as found:
        assert found is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"exit_code": 0}', id="no size"),
        pytest.param('{"exit_code": 0, "size": -1}', id="a size below zero"),
        pytest.param('{"exit_code": 0, "size": 99999999999}', id="more than the limit"),
        pytest.param("[" * 100_000, id="a head without end"),
        pytest.param("[]", id="another form"),
    ],
)
def test_a_checker_whose_answers_cannot_be_read_is_not_used_again(tmp_path, answer, eventually):
    sound = model(tmp_path, "sound")
    greets = 'print(\'{"schema": "fairlead.checker/v1"}\', flush=True)'
    program = f"{greets}\ninput()\nprint({answer!r}, flush=True)\ninput()"
    with checker(tmp_path / "jobs", 60.0, program=(sys.executable, "-I", "-c", program)) as found:
        assert found.run(inspect(sound)) is None
        assert not found.runs
        assert found.run(inspect(sound)) is None
    eventually(lambda: not left_running(tmp_path), "it ended")
