"""Installs the packages of a lock and says how far it is; called by the Makefile with the virtual environment's Python.

On a terminal one line is written over again and again, elsewhere one comes every ten seconds.

Usage: python requirements/install.py LOCK WHAT
"""

import re
import subprocess
import sys
import time
from pathlib import Path

_PIP = ["-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
_LOCKED = ["--require-hashes", "--only-binary", ":all:", "-r"]
_PACKAGE = re.compile(r"^(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
_EVERY_S = 10.0


def main() -> int:
    """Install, and return pip's exit code."""
    lock, what = sys.argv[1:]
    progress = Progress(
        what, len(re.findall(r"^[A-Za-z0-9]\S*==", Path(lock).read_text(encoding="utf-8"), re.MULTILINE))
    )
    with subprocess.Popen([sys.executable, *_PIP, *_LOCKED, lock], stdout=subprocess.PIPE, text=True) as pip:
        assert pip.stdout is not None  # noqa: S101 - a pipe was asked for
        for line in pip.stdout:
            progress.read(line)
    progress.end()
    return pip.returncode


class Progress:
    """How many packages of a lock pip has come to; `total` are in it."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._seen: set[str] = set()
        self._is_terminal = sys.stdout.isatty()
        self._said_s = time.monotonic()
        self._write(f"{what}: {total} packages")

    def read(self, line: str) -> None:
        """Take a line that pip wrote."""
        if found := _PACKAGE.match(line):
            self._seen.add(found[1].lower())
            self._say(f"{self._what}: {len(self._seen)} of {self._total}, {found[1]}")
        elif line.startswith("Installing collected packages"):
            self._write(f"{self._what}: all are fetched, now they are unpacked")

    def end(self) -> None:
        """Leave the last line as it is."""
        if self._is_terminal:
            sys.stdout.write("\n")

    def _say(self, text: str) -> None:
        if self._is_terminal or time.monotonic() - self._said_s >= _EVERY_S:
            self._write(text)

    def _write(self, text: str) -> None:
        self._said_s = time.monotonic()
        sys.stdout.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
