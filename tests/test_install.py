"""`make setup` says how far it is while pip works."""

import hashlib
import os
import pty
import re
import subprocess
import sys
import termios
import zipfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]


def wheel(folder: Path, name: str) -> str:
    """Make the smallest package there can be; return its line in a lock."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def command(tmp_path: Path, lock: str) -> list[str]:
    (tmp_path / "lock.txt").write_text(lock)
    return [sys.executable, "requirements/install.py", str(tmp_path / "lock.txt"), "Installing"]


def variables(tmp_path: Path) -> dict[str, str]:
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_TARGET": str(tmp_path / "here"),
        "PIP_CONFIG_FILE": "/dev/null",
    }


def installed(tmp_path: Path, lock: str) -> "subprocess.CompletedProcess[str]":
    """Install as in a CI job, whose output is a file."""
    return subprocess.run(
        command(tmp_path, lock),
        cwd=ROOT,
        env=variables(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def on_a_terminal(tmp_path: Path, lock: str, *, columns: int) -> tuple[int, str]:
    """Install in a terminal of that width; return the exit code and what was written to it."""
    own, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with subprocess.Popen(
        command(tmp_path, lock), cwd=ROOT, env=variables(tmp_path), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        written = b""
        with suppress(OSError):  # which is how a terminal ends
            while read := os.read(own, 4096):
                written += read
        os.close(own)
        return process.wait(120), written.decode()


def test_it_says_how_many_and_when_it_unpacks(tmp_path: Path) -> None:
    done = installed(tmp_path, wheel(tmp_path, "first_one") + wheel(tmp_path, "second_one"))
    assert (done.returncode, done.stderr) == (0, "")
    *before, last = done.stdout.splitlines()
    assert before == ["Installing: 2 packages", "Installing: all are fetched, 2 to unpack"]
    assert re.fullmatch(r"Installing: done in \d+ s", last)
    assert (tmp_path / "here" / "second_one.py").exists()


def test_what_cannot_be_installed_ends_it_with_pips_own_words(tmp_path: Path) -> None:
    done = installed(tmp_path, wheel(tmp_path, "first_one").replace("sha256:", "sha256:0"))
    assert done.returncode != 0
    assert "ERROR" in done.stderr


def test_a_terminal_shows_one_line_that_fits_into_it(tmp_path: Path) -> None:
    code, written = on_a_terminal(tmp_path, wheel(tmp_path, "first_one"), columns=30)
    assert code == 0
    texts = written.split("\r\x1b[K")
    assert texts[:3] == ["", "Installing: 1 packages", "Installing: all are fetched, 1 to unpack"[:29]]
    assert re.fullmatch(r"Installing: done in \d+ s\r\n", texts[-1])


def test_on_a_terminal_pips_own_words_have_lines_of_their_own(tmp_path: Path) -> None:
    lock = wheel(tmp_path, "first_one").replace("sha256:", "sha256:0")
    code, written = on_a_terminal(tmp_path, lock, columns=200)
    assert code != 0
    assert "\r\x1b[KERROR: " in written.replace("\x1b[31m", "")
    assert "done" not in written
