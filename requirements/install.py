"""Installs the packages of a lock and says how far it is; called by the Makefile with the virtual environment's Python.

On a terminal one line is written over again and again, elsewhere one comes every ten seconds.

Usage: python requirements/install.py LOCK WHAT
"""

import re
import selectors
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

_PIP = ["-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
_LOCKED = ["--require-hashes", "--only-binary", ":all:", "-r"]
_PACKAGE = re.compile(r"^(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
_UNPACKS = "Installing collected packages: "
_EVERY_S = 10.0
_LOOK_EVERY_S = 0.5


def main() -> int:
    """Install, and return pip's exit code."""
    lock, what = sys.argv[1:]
    progress = Progress(
        what, len(re.findall(r"^[A-Za-z0-9]\S*==", Path(lock).read_text(encoding="utf-8"), re.MULTILINE))
    )
    command = [sys.executable, *_PIP, *_LOCKED, lock]
    # Without buffers: what has been read of a line must not be missing where the selector looks.
    pipes = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    with pipes as pip, selectors.DefaultSelector() as outputs:
        assert pip.stdout is not None  # noqa: S101 - pipes were asked for
        assert pip.stderr is not None  # noqa: S101
        readers = {pip.stdout: progress.read, pip.stderr: progress.complain}
        for output in readers:
            outputs.register(output, selectors.EVENT_READ)
        while readers:
            for ready, _events in outputs.select(_LOOK_EVERY_S):
                output = ready.fileobj
                if line := output.readline():
                    readers[output](line.decode(errors="replace"))
                else:
                    outputs.unregister(output)
                    del readers[output]
            progress.look()
    progress.end(pip.returncode)
    return pip.returncode


class Progress:
    """How many packages of a lock pip has come to, and then how many it has unpacked; `total` are in the lock."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._seen: set[str] = set()
        self._to_unpack = 0
        self._before = _installed()
        self._is_terminal = sys.stdout.isatty()
        self._began_s = self._said_s = time.monotonic()
        self._write(f"{what}: {total} packages")

    def read(self, line: str) -> None:
        """Take a line that pip wrote."""
        if found := _PACKAGE.match(line):
            self._seen.add(found[1].lower())
            self._say(f"{len(self._seen)} of {self._total}, {found[1]}")
        elif line.startswith(_UNPACKS):
            self._to_unpack = line.count(",") + 1
            self._write(f"{self._what}: all are fetched, {self._to_unpack} to unpack")

    def look(self) -> None:
        """Look how many are unpacked, of which pip says nothing before the last."""
        if self._to_unpack and (unpacked := len(_installed() - self._before)):
            self._say(f"{unpacked} of {self._to_unpack} unpacked")

    def complain(self, line: str) -> None:
        """Pass on a warning or error of pip's, on a line of its own."""
        if self._is_terminal:
            self._overwrite("")
        sys.stderr.write(line)
        sys.stderr.flush()

    def end(self, returncode: int) -> None:
        """Say how long it took; of what failed pip has said why."""
        if returncode == 0:
            self._write(f"{self._what}: done in {time.monotonic() - self._began_s:.0f} s")
        if self._is_terminal:
            sys.stdout.write("\n")

    def _say(self, text: str) -> None:
        if self._is_terminal or time.monotonic() - self._said_s >= _EVERY_S:
            self._write(f"{self._what}: {text}")

    def _write(self, text: str) -> None:
        self._said_s = time.monotonic()
        if self._is_terminal:
            self._overwrite(text)
        else:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def _overwrite(self, text: str) -> None:
        # What is longer than the terminal is wide would stay there as a line of its own.
        sys.stdout.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        sys.stdout.flush()


def _installed() -> set[Path]:
    """Return the descriptions of all packages in this Python's folders."""
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return {file for folder in folders for file in folder.glob("*.dist-info")}


if __name__ == "__main__":
    sys.exit(main())
