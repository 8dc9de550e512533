"""Runs a command with a PostgreSQL and a Redis of its own, in which Fairlead's settings put database and broker.

python -m tests.servers COMMAND...

Where one is not installed, the command runs without it, on SQLite or with the broker in the file system.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from tests.servers.parts import MissingPartError, is_everything_required
from tests.servers.postgres import postgres
from tests.servers.redis import redis_socket


def main(command: Sequence[str]) -> int:
    """Run `command` against fresh servers and return its exit code; a SIGTERM ends them too, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    variables: dict[str, str] = {}
    with ExitStack() as servers:
        try:
            variables["FAIRLEAD_DATABASE_URL"] = servers.enter_context(postgres()).socket_url
        except MissingPartError as missing:
            if not _goes_on(missing, "tests run on SQLite"):
                return 1
        try:
            variables["FAIRLEAD_BROKER_URL"] = servers.enter_context(redis_socket())
        except MissingPartError as missing:
            if not _goes_on(missing, "tests send tasks through the file system"):
                return 1
        return subprocess.run(command, env=os.environ | variables, check=False).returncode


def _goes_on(missing: MissingPartError, instead: str) -> bool:
    """Write what is missing, and return whether the command runs all the same."""
    sys.stderr.write(f"{missing}{'' if is_everything_required() else f'; {instead} instead'}\n")
    return not is_everything_required()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
