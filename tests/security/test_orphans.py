"""A program that leaves a process behind in a session of its own: it ends with the program."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.process_identity import start_ticks
from integrations.clusters.base import Job, JobKind
from integrations.clusters.local.jobs import jobs
from integrations.sandbox import ability
from integrations.sandbox.policy import Mode
from tests.integrations._support.leftovers import left_running

ROOT = Path(__file__).parents[2]
LEAVES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(120)
    os._exit(0)
os.wait()
while not os.path.getsize(sys.argv[1]):
    time.sleep(0.01)
"""
AGENT = """
import asyncio, os, subprocess, sys
from pathlib import Path
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.state_files import StateFiles

async def main(folder, code):
    holder = Holder.started()
    other = Process(holder, program(folder / "other", ["sleep", "120"]), StateFiles(folder), restarts=0, message="")
    command = [sys.executable, "-c", code, str(folder / "pid")]
    one = Process(holder, program(folder / "one", command), StateFiles(folder), restarts=0, message="")
    await one.ended()
    assert other.running
    await other.kill()
    holder.close()

def program(name, command):
    return Program(command, dict(os.environ), name.with_suffix(".log"), name.with_suffix(".json"))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "pid").touch()
    platform = ROOT / "platform"
    subprocess.run([sys.executable, "-c", AGENT, str(tmp_path), LEAVES], cwd=platform, check=True, timeout=60)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while start_ticks(pid):  # the kernel has yet to take it off, at most
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Says which processes it sees, and lasts as long as it is asked to.
LEAVES_AND_SAYS = """
import json, os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writing, b"x")
        time.sleep(120)
    os._exit(0)
os.wait()
os.read(reading, 1)
print(json.dumps(sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())))
sys.stdout.flush()
time.sleep(float(os.environ["LASTS_S"]))
"""


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"model")
    return folder


@pytest.mark.parametrize(
    ("lasts_s", "timeout_s", "exit_code"),
    [pytest.param("0", 60.0, 0, id="it ends"), pytest.param("120", 3.0, jobs.TIMED_OUT, id="it is ended")],
)
def test_what_a_job_leaves_running_ends_with_it(
    tmp_path: Path, artifact: Path, lasts_s: str, timeout_s: float, exit_code: int
) -> None:
    runtime = (sys.executable, "-I", "-c", LEAVES_AND_SAYS)
    asked = Job(JobKind.INSPECT, artifact.as_uri(), timeout_s, env={"LASTS_S": lasts_s}, is_code=True)
    done = jobs.run(asked, tmp_path / "jobs", allow_python_models=True, runtime=runtime)
    assert done.exit_code == exit_code
    seen = json.loads(done.output)
    assert seen[0] == 1
    assert len(seen) == 3  # the first of its namespace, itself, and what it leaves
    deadline = time.monotonic() + 10
    while left_running(tmp_path):  # the kernel has yet to take it off, at most
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("ends", "exit_code"), [("sys.exit(7)", 7), ("os.abort()", -6), ("os.kill(os.getpid(), 9)", -9)]
)
@pytest.mark.usefixtures("artifact")
def test_a_job_ends_as_its_program_does(tmp_path: Path, ends: str, exit_code: int) -> None:
    runtime = (sys.executable, "-I", "-c", f"import os, sys; {ends}")
    asked = Job(JobKind.INSPECT, (tmp_path / "artifact").as_uri(), 60)
    assert jobs.run(asked, tmp_path / "jobs", runtime=runtime).exit_code == exit_code
