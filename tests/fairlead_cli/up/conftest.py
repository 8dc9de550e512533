"""Small real processes to watch."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.up.home import Home, prepare


def until(look: Callable[[], Any], within_s: float = 10.0) -> Any:
    """Return the first truth `look` sees."""
    deadline = time.monotonic() + within_s
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)
    return seen


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "home")


@pytest.fixture
def sleeper() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start Python code as a session of its own; returns once it printed a line. Killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str = "", **environment: str) -> "subprocess.Popen[str]":
        text = f"import os, signal, subprocess, sys, time\n{code}\nprint('up', flush=True)\ntime.sleep(60)"
        process = subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
