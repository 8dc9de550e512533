"""Preparation before components start: database migration, and a token for this machine's user."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from fairlead_cli.errors import CliError
from fairlead_cli.up import processes
from fairlead_cli.up.home import Home

_TIMEOUT_S = 120.0
# What Python puts before an exception's message, such as `django.core.exceptions.ImproperlyConfigured: `.
_EXCEPTION = re.compile(r"^(\w+\.)+\w+: ")


def migrate(variables: Mapping[str, str]) -> None:
    """Migrate the database to this version."""
    manage(["migrate", "--noinput", "--verbosity", "0"], variables)


class Preparation:
    """Migrates the database, and ensures that the token file holds an accepted token.

    It takes as long as Python's imports in the processes that need it. So they are started in parallel, and wait at a
    pipe (`control_plane.database.prepared`) that ends when it is over, or this process.

    Attributes:
        gate: the pipe end that these processes inherit.
    """

    def __init__(self, home: Home, variables: Mapping[str, str]) -> None:
        self._home, self._variables = home, variables
        self.gate, self._closed_gate = os.pipe()
        self._token_before = _content(home.token)
        self._process: subprocess.Popen[bytes] | None = None
        self._outputs: tuple[IO[bytes], IO[bytes]] = (_file(), _file())
        self._until = 0.0

    def begin(self) -> None:
        """Start it. Clusters are watched once it reports one; the control plane reports later ones."""
        self._home.watches.unlink(missing_ok=True)
        arguments = ["-m", "django", "prepare_home", "--token", str(self._home.token)]
        self._process = processes.started(arguments, self._variables, *self._outputs)
        self._until = time.monotonic() + _TIMEOUT_S

    @property
    def is_over(self) -> bool:
        """Whether it has ended; CliError where it takes too long."""
        if self._process is None or self._process.poll() is not None:
            return self._process is not None
        if time.monotonic() > self._until:
            raise CliError(f"`django prepare_home` did not end within {_TIMEOUT_S:g} s; see {self._home.logs}")
        return False

    def finish(self) -> str | None:
        """Release the waiting processes; returns the token if it is new; CliError where the database is not ready."""
        said, complained = (_read(output) for output in self._outputs)
        if self._process is None or self._process.returncode != 0:
            raise _failure("prepare_home", complained)
        if said.strip() == "yes":
            self._home.watches.touch()
        self.open_gate()
        after = _content(self._home.token)
        return after if after != self._token_before else None

    def open_gate(self) -> None:
        """Release the waiting processes; a repeated call has no effect."""
        if self._closed_gate >= 0:
            os.close(self._closed_gate)
            self._closed_gate = -1


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _read(output: IO[bytes]) -> str:
    with output:
        output.seek(0)
        return output.read().decode(errors="replace")


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def manage(arguments: list[str], variables: Mapping[str, str]) -> str:
    """Run a Django management command, and return its output; CliError with its last line where it failed."""
    done = processes.completed(["-m", "django", *arguments], variables, timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        raise _failure(arguments[0], done.stderr)
    return done.stdout


def _failure(command: str, complained: str) -> CliError:
    last = (complained.strip().splitlines() or ["it printed nothing"])[-1]
    return CliError(f"`django {command}` failed: {_EXCEPTION.sub('', last)}")
