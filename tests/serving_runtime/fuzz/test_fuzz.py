"""Bounded fuzzing of every way in; `make fuzz` does the same for as long as one likes."""

import asyncio
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime.fuzz import campaign, loader, model_files
from tests.serving_runtime.fuzz.documents import FILES
from tests.serving_runtime.fuzz.seeds import SEEDS
from tests.serving_runtime.fuzz.targets import Target, runtime

RUNS = 3000
RUNS_OF_FILES = 600
"""Of the control plane's, which have no short ones."""
MUTATIONS = 60


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    folder = tmp_path_factory.mktemp("fuzz") / "models"
    folder.mkdir()
    with asyncio.Runner() as runner:
        yield runner.run(runtime(folder)).targets() | FILES


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_and_their_neighbours_do_no_harm(targets: dict[str, Target], name: str) -> None:
    chance = random.Random(name)
    for seed in SEEDS[name]:
        targets[name](seed)
        for _ in range(min(60, _runs(name) // len(SEEDS[name]))):
            targets[name](_mutated(seed, chance))


def _runs(name: str) -> int:
    return RUNS_OF_FILES if name in FILES else RUNS


@pytest.mark.parametrize("name", model_files.BACKENDS)
def test_files_and_their_neighbours_break_no_promise(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    seeds = model_files.seeds(name)
    with model_files.target(name, tmp_path, tmp_path) as files:
        for seed in seeds:
            files.run(seed)
        for _ in range(MUTATIONS):
            files.run(_mutated(chance.choice(seeds), chance))
    assert files.outcomes["ran"]


def test_a_file_that_ends_its_process_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = onnx_models.ending(tmp_path / "m.onnx")
    data = b"\0" + file.read_bytes()
    with model_files.target("onnx", tmp_path, tmp_path) as files:
        files.run(data)
        assert files.outcomes["SIGFPE"] == 1, "what may end its process is counted"
        monkeypatch.setattr(model_files, "SURVIVED", frozenset(model_files.BACKENDS))
        with pytest.raises(model_files.FileFindingError, match="SIGFPE"):
            files.run(data)
    (kept,) = tmp_path.glob("onnx-*.onnx")
    assert kept.read_bytes() == file.read_bytes()


def test_model_files_are_loaded_in_the_sandbox(tmp_path: Path) -> None:
    """Of two files the one is read that is in the folder for them."""
    files, own, beside = tmp_path / "files", tmp_path / "own", tmp_path / "beside"
    for folder in (files, own, beside):
        folder.mkdir()
    for folder in (files, beside):
        (folder / "model.txt").write_bytes(model_files.seeds("lightgbm")[0])
    with model_files.loading("lightgbm", files, own) as load:
        assert load(files / "model.txt") == loader.RAN
        assert load(beside / "model.txt") == loader.REFUSED


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("INFO: seed corpus\n", (0, 0)),
        ("#2\tINITED cov: 7 ft: 8\n#4096\tpulse  cov: 9 ft: 9 corp: 1/1b\nDone 4100 runs\n", (4096, 9)),
    ],
)
def test_progress_is_that_of_the_fuzzers_last_line(log: str, expected: tuple[int, int]) -> None:
    assert campaign.counted(log) == expected


def test_a_campaign_prints_a_table(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.serving_runtime.fuzz.campaign", str(tmp_path), "1", "config", "lightgbm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    config, lightgbm = done.stdout.splitlines()[-2:]
    assert config.startswith("config ")
    assert "nothing found" in config
    assert re.search(r"\(.*\b\d+ ran", lightgbm)


def _mutated(seed: bytes, chance: random.Random) -> bytes:
    """Return the seed with a few of its bytes changed, doubled, cut out or cut off."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at : at + 1] = chance.randbytes(1)
            case 1:
                del data[at : at + chance.randint(1, 16)]
            case 2:
                data[at:at] = data[max(0, at - 16) : at]
            case 3:
                data[at:at] = chance.choice([b"-1", b"1e999", b"null", b"\x00", b"\xff\xff\xff\xff", b"[" * 64, b'"'])
            case _ if at:
                del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", SEEDS)
def test_coverage_guided_fuzzing_finds_nothing(tmp_path: Path, name: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.serving_runtime.fuzz",
        name,
        str(tmp_path),
        f"-runs={_runs(name)}",
        "-seed=1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    found = [file.read_bytes() for file in tmp_path.iterdir()]
    assert done.returncode == 0, f"{found}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
