import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.process_identity import start_ticks
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.pid_files import AGENT, read_record
from integrations.clusters.local.state_files import StateFiles

STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)


@pytest.fixture
def holder() -> Iterator[Holder]:
    held = Holder.started()
    yield held
    held.close()


def program(folder: Path, code: str) -> Program:
    return Program(
        [sys.executable, "-c", code], {"COLOUR": "green"}, folder / "logs" / "x.log", folder / "run" / "x.json"
    )


async def for_ever() -> str:
    await asyncio.Event().wait()
    return "never said"


async def test_it_runs_in_a_group_of_its_own_with_log_and_record(holder, tmp_path):
    code = (
        "import os; print(os.environ['COLOUR'], os.getpgrp() == os.getpid(), flush=True); import time; time.sleep(60)"
    )
    process = Process(holder, program(tmp_path, code), StateFiles(tmp_path), restarts=2, message="why")
    record = read_record(tmp_path / "run" / "x.json")
    assert record is not None
    assert (record.pid, record.restarts, record.message, record.started_by) == (process.pid, 2, "why", AGENT)
    assert record.start_ticks == start_ticks(process.pid)
    await until(lambda: (tmp_path / "logs/x.log").read_text() == "green True\n")
    await process.stop(5)
    assert not process.running
    process.forget()
    assert not (tmp_path / "run" / "x.json").exists()


async def until(look) -> None:
    async with asyncio.timeout(10):
        while not look():  # noqa: ASYNC110 - another process tells nobody when it has written
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(
            "import sys; sys.exit('no such model')", r"exit code 1 after \d+\.\d s: no such model$", id="last words"
        ),
        pytest.param("print('x' * 1000)", r"exit code 0 .*: x{297}\.\.\.$", id="long last words are cut"),
        pytest.param("import os; os.kill(os.getpid(), 9)", r"^ended by SIGKILL after \d+\.\d s$", id="killed"),
        pytest.param("import os; print('oh'); os.abort()", r"^ended by SIGABRT after", id="crashed"),
    ],
)
async def test_end_is_told(holder, tmp_path, code, said):
    ended = await Process(holder, program(tmp_path, code), StateFiles(tmp_path), restarts=0, message="").watched(
        for_ever()
    )
    assert re.search(said, ended), ended


async def test_last_words_are_of_this_process_not_of_the_one_before(holder, tmp_path):
    await Process(holder, program(tmp_path, "print('older')"), StateFiles(tmp_path), restarts=0, message="").watched(
        for_ever()
    )
    ended = await Process(
        holder, program(tmp_path, "raise SystemExit(1)"), StateFiles(tmp_path), restarts=0, message=""
    ).watched(for_ever())
    assert ended.endswith(" s")


async def test_complaint_kills_it(holder, tmp_path):
    async def complain() -> str:
        return "was too slow"

    process = Process(
        holder, program(tmp_path, "import time; time.sleep(60)"), StateFiles(tmp_path), restarts=0, message=""
    )
    assert await process.watched(complain()) == "was too slow"
    assert not process.running


async def test_stubborn_program_is_killed_with_its_children(holder, tmp_path):
    child = "import os, time; open('child', 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"import os, subprocess, sys; os.chdir({str(tmp_path)!r})\n"
    code += f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
    process = Process(holder, program(tmp_path, code + STUBBORN), StateFiles(tmp_path), restarts=0, message="")
    await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    await until(lambda: "up" in (tmp_path / "logs/x.log").read_text())
    await process.stop(0.1)
    pid = int((tmp_path / "child").read_text())
    await until(lambda: start_ticks(pid) is None)


async def test_large_log_makes_room_and_one_older_is_kept(holder, tmp_path):
    (tmp_path / "logs").mkdir()
    with (tmp_path / "logs/x.log").open("wb") as log:
        log.truncate((10 << 20) + 1)
    await Process(holder, program(tmp_path, "print('new')"), StateFiles(tmp_path), restarts=0, message="").watched(
        for_ever()
    )
    assert (tmp_path / "logs/x.log").read_text() == "new\n"
    assert (tmp_path / "logs/x.log.1").stat().st_size > 10 << 20


async def test_program_that_is_not_there_is_told(holder, tmp_path):
    nothing = Program(["/no/such/program"], {}, tmp_path / "x.log", tmp_path / "x.json")
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        Process(holder, nothing, StateFiles(tmp_path), restarts=0, message="")
    launched = replace(nothing, limits={"core": 0})
    ended = await Process(holder, launched, StateFiles(tmp_path), restarts=0, message="").watched(for_ever())
    assert "No such file or directory" in ended


async def test_signal_is_for_the_whole_group(holder, tmp_path):
    process = Process(
        holder, program(tmp_path, "import time; time.sleep(60)"), StateFiles(tmp_path), restarts=0, message=""
    )
    os.killpg(process.pid, signal.SIGTERM)
    await process.ended()
    assert not process.running
