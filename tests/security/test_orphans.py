"""A program that leaves a process behind in a session of its own: it ends with the program, where the agent runs."""

import subprocess
import sys
import time
from pathlib import Path

from common.processes import start_ticks

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
from integrations.clusters.local.agent.processes import Process, Program, adopt_orphans

async def main(folder, code):
    adopt_orphans()
    other = Process(program(folder / "other", ["sleep", "120"]), restarts=0, message="")
    one = Process(program(folder / "one", [sys.executable, "-c", code, str(folder / "pid")]), restarts=0, message="")
    await one.ended()
    assert other.running
    await other.kill()

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
