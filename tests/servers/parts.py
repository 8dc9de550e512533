"""What a machine may lack: a test that needs it is skipped with one line, or fails where everything is required; and
where that is kept which tests fetch or build once."""

import contextlib
import os
import random
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


class MissingPartError(Exception):
    """A program is not installed; the text says how to get it."""


def is_everything_required() -> bool:
    """Return whether a missing part is a failure (`FAIRLEAD_REQUIRE_ALL=1`, as in `.ci/run`)."""
    return os.environ.get("FAIRLEAD_REQUIRE_ALL") == "1"


def skip_or_fail(missing: MissingPartError) -> NoReturn:
    """End the present test for want of a part."""
    import pytest  # noqa: PLC0415 - the servers are also started without it

    if is_everything_required():
        pytest.fail(str(missing))
    pytest.skip(str(missing))


def cache() -> Path:
    """Return the folder of what tests fetch or build once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead"


_PORTS = range(20_000, 32_768)
"""Below those that the kernel gives to connections: one of them could be taken before the server listens."""


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on, not even a test run that asks at the same time."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def program(name: str, package: str, folders: Sequence[Path]) -> Path:
    """Return the path of a program in the first of `folders` that has it."""
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise MissingPartError(f"{name} is not installed; `make deps` installs the Debian package {package}")
