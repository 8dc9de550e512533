"""Bounded fuzzing of every way in; `make fuzz` does the same for as long as one likes."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving_runtime.fuzz import model_files
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
def test_files_and_their_neighbours_end_no_process(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    with model_files.target(name, tmp_path) as run:
        for seed in model_files.seeds(name):
            run(seed)
            for _ in range(MUTATIONS):
                run(_mutated(seed, chance))


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
