"""Isolated Python interpreter (`python -I`) for the server's child processes, where the server's own is isolated."""

import sys


def interpreter() -> list[str]:
    """Return the beginning of a command line that runs Python as this process runs."""
    return [sys.executable, *(["-I"] if sys.flags.isolated else [])]
