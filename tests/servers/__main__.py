"""Runs a command with a PostgreSQL and a Redis of its own, in which Fairlead's settings put database and broker.

python -m tests.servers COMMAND...
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from tests.servers.parts import MissingPartError, is_everything_required
from tests.servers.postgres import FOLDER_VARIABLE, postgres
from tests.servers.redis import redis


def main(command: Sequence[str]) -> int:
    """Run `command` against fresh servers and return its exit code; a SIGTERM ends them too, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with postgres() as database, redis() as broker:
            variables = {
                "FAIRLEAD_DATABASE_URL": database.url,
                "FAIRLEAD_BROKER_URL": broker.url,
                FOLDER_VARIABLE: str(database.folder),
            }
            return subprocess.run(command, env=os.environ | variables, check=False).returncode
    except MissingPartError as missing:
        sys.stderr.write(f"{'failed' if is_everything_required() else 'skipped'}: {missing}\n")
        return 1 if is_everything_required() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
