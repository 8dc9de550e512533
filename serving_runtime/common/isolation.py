"""The interpreter of a process that the server starts: as isolated as its own (`python -I`)."""

import sys


def interpreter() -> list[str]:
    """Return the beginning of a command line that runs Python as this process runs."""
    return [sys.executable, *(["-I"] if sys.flags.isolated else [])]
