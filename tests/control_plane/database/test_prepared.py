"""Processes that `fairlead up` starts wait for the database; others do not."""

import os
import subprocess
import sys

import pytest

from control_plane.database.prepared import VARIABLE, wait_until_prepared

WAIT = """
from control_plane.database.prepared import wait_until_prepared
print("waits", flush=True)
wait_until_prepared()
print("begins", flush=True)
"""


def test_a_process_waits_until_the_pipe_ends() -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        env={**os.environ, VARIABLE: str(reading), "PYTHONPATH": "platform"},
        pass_fds=[reading],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    os.close(writing)
    assert process.communicate(timeout=20)[0] == "begins\n"
    os.close(reading)


def test_others_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    wait_until_prepared()
