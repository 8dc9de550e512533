"""Child processes of the demo: the platform, the training, the traffic. All end with the demo.

Their gateway speaks plain HTTP, whatever the environment says: it is the demo's own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fairlead_cli.errors import CliError, TimedOut
from fairlead_cli.up import gateway_tls, processes
from fairlead_cli.up.home import Home

_START_S, _TRAIN_S, _TRAFFIC_END_S = 150.0, 300.0, 20.0
_POLL_S = 0.1


@contextmanager
def platform(arguments: Sequence[str], home: Home) -> "Iterator[subprocess.Popen[str]]":
    """Run `fairlead up`, yield its process once it is ready, and end it with all its children."""
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = home.path / "up.log"
    with log.open("w", encoding="utf-8") as output:
        started = _start(["-m", "fairlead_cli", "up", *arguments], output)
    try:
        _wait_ready(started, home, log)
        yield started
    finally:
        _end_patiently(started)


def train(folder: Path) -> None:
    """Train the demo's models into `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "fairlead_cli.demo.train", str(folder)],
        capture_output=True,
        text=True,
        timeout=_TRAIN_S,
        check=False,
        preexec_fn=processes.ends_with_parent(signal.SIGKILL),
    )
    if done.returncode != 0:
        raise CliError(f"the training failed: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")


@contextmanager
def traffic(arguments: Sequence[str], log: Path) -> "Iterator[subprocess.Popen[str]]":
    """Run the traffic process; on exit it finishes its requests and logs them."""
    with log.open("w", encoding="utf-8") as output:
        started = _start(["-m", "fairlead_cli.demo.traffic", *arguments], output)
    try:
        yield started
        started.terminate()
        with suppress(subprocess.TimeoutExpired):
            started.wait(_TRAFFIC_END_S)
        if started.returncode != 0:
            said = (log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"])[-1]
            raise CliError(f"the traffic process failed: {said} (see {log})")
    finally:
        started.kill()
        started.wait()


def _start(arguments: Sequence[str], output: IO[str]) -> "subprocess.Popen[str]":
    # Its own session: Ctrl-C reaches only the demo, which ends the others in order.
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={name: value for name, value in os.environ.items() if name not in gateway_tls.VARIABLES},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=processes.ends_with_parent(),  # noqa: PLW1509 - this process has one thread
    )


def _wait_ready(started: "subprocess.Popen[str]", home: Home, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not _serves(home, started.pid):
        if started.poll() is not None:
            raise CliError(log.read_text(encoding="utf-8").strip() or f"`fairlead up` ended with {started.returncode}")
        if time.monotonic() > deadline:
            raise TimedOut(f"the platform did not come up within {_START_S:g} s; see {home.logs}")
        time.sleep(_POLL_S)


def _serves(home: Home, pid: int) -> bool:
    """Return whether the `fairlead up` of this process id reports that it is ready."""
    with suppress(OSError, ValueError, KeyError):
        return int(json.loads(home.endpoints.read_text(encoding="utf-8"))["pid"]) == pid
    return False


def _end_patiently(started: "subprocess.Popen[str]") -> None:
    """Stop the platform and wait for it; Ctrl-C meanwhile hurries it, and it bounds its own end."""
    while started.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(started.pid, signal.SIGTERM)
        with suppress(KeyboardInterrupt):
            started.wait()
