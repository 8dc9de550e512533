"""A candidate answers recorded requests in a process that nobody else reaches, and is gone afterwards."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import InvalidInput, Unavailable
from common.process_identity import start_ticks
from integrations.artifacts.store import ArtifactStore
from integrations.clusters.base import Candidate, Exchange
from integrations.clusters.local.jobs.replays import replay
from tests.integrations._support.runtimes import model

X = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
RECORDED = Exchange("a", "digits-00001", "1", 12.5, {"id": "", "inputs": [X]}, {"outputs": []})


@pytest.fixture
def candidate(tmp_path: Path) -> Candidate:
    with ArtifactStore(tmp_path / "artifacts", max_bytes=1 << 30).begin("model.onnx") as writer:
        writer.write(model(3))
        stored = writer.commit()
    return Candidate("version 3", "digits", "3", stored.uri)


def stub(code: str) -> tuple[str, ...]:
    """Return a runtime that says that it is ready, and then runs `code`."""
    return (sys.executable, "-c", f"import os, sys, time; print('{{\"ready\": true}}', flush=True); {code}")


def children() -> set[int]:
    """Return the processes that this one started and that still run."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdecimal() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields and int(fields[1]) == os.getpid():
            found.add(int(entry.name))
    return found


@pytest.fixture(autouse=True)
def _leaves_nothing(tmp_path: Path) -> Iterator[None]:
    before = children()
    yield
    assert children() == before
    assert list((tmp_path / "jobs").iterdir()) == []


def test_a_candidate_answers_with_its_own_version_and_configuration(candidate: Candidate, tmp_path: Path) -> None:
    asked = replace(candidate, model_config={"max_batch_size": 4, "dynamic_batching": {}})
    with replay(asked, tmp_path / "jobs") as answer:
        for name in ("a", "b"):
            answered = answer(replace(RECORDED, request_id=name))
            assert (answered.request_id, answered.revision, answered.model_version) == (name, "version 3", "3")
            assert (answered.request, answered.at, answered.error_code) == (RECORDED.request, 12.5, "")
            assert answered.response["outputs"][0]["data"] == [3, 6, 9, 12]


def test_a_request_that_the_candidate_refuses_is_an_answer(candidate: Candidate, tmp_path: Path) -> None:
    wrong = replace(RECORDED, request={"inputs": [{**X, "name": "z"}]})
    with replay(candidate, tmp_path / "jobs") as answer:
        assert answer(wrong).error_code == "INVALID_ARGUMENT"
        assert "z" in answer(wrong).response["error"]
        assert answer(RECORDED).error_code == ""


def test_a_model_that_cannot_be_served_is_told_with_the_runtimes_reason(candidate: Candidate, tmp_path: Path) -> None:
    asked = replace(candidate, model_config={"platform": "no_such_platform"})
    with pytest.raises(InvalidInput, match=r"version 3 cannot be served: .*no_such_platform"):
        replay(asked, tmp_path / "jobs").__enter__()


def test_an_artifact_that_is_gone_is_told(candidate: Candidate, tmp_path: Path) -> None:
    asked = replace(candidate, artifact_uri=(tmp_path / "nowhere").as_uri())
    with pytest.raises(InvalidInput, match="is not there; push the model version again"):
        replay(asked, tmp_path / "jobs").__enter__()


def test_a_candidate_that_hangs_is_killed(candidate: Candidate, tmp_path: Path) -> None:
    asked = replace(candidate, timeout_s=1.0)
    late = pytest.raises(Unavailable, match="version 3 did not answer request a within 1 s")
    with replay(asked, tmp_path / "jobs", runtime=stub("time.sleep(60)")) as answer, late:
        answer(RECORDED)


def test_a_candidate_that_dies_says_its_last_words(candidate: Candidate, tmp_path: Path) -> None:
    dies = stub("sys.stdin.readline(); sys.stderr.write('out of luck\\n'); os._exit(7)")
    dead = pytest.raises(Unavailable, match="request a: its process ended with exit code 7: out of luck")
    with replay(candidate, tmp_path / "jobs", runtime=dies) as answer, dead:
        answer(RECORDED)


def test_it_ends_when_the_block_fails(candidate: Candidate, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"), replay(candidate, tmp_path / "jobs"):
        raise RuntimeError("mine")


def test_the_scratch_of_a_worker_that_was_killed_goes_with_the_next(candidate: Candidate, tmp_path: Path) -> None:
    (tmp_path / "jobs" / f"{os.getpid()}-{(start_ticks(os.getpid()) or 0) - 1}-x").mkdir(parents=True)
    with replay(candidate, tmp_path / "jobs"):
        assert len(list((tmp_path / "jobs").iterdir())) == 1
