"""`make setup` says how far it is while pip works."""

import hashlib
import subprocess
import sys
import zipfile
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


def installed(tmp_path: Path, lock: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "lock.txt").write_text(lock)
    command = [sys.executable, "requirements/install.py", str(tmp_path / "lock.txt"), "Installing"]
    variables = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_TARGET": str(tmp_path / "here"),
        "PIP_CONFIG_FILE": "/dev/null",
    }
    return subprocess.run(command, cwd=ROOT, env=variables, check=False, capture_output=True, text=True, timeout=120)


def test_it_says_how_many_and_when_it_unpacks(tmp_path: Path) -> None:
    done = installed(tmp_path, wheel(tmp_path, "first_one") + wheel(tmp_path, "second_one"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Installing: 2 packages", "Installing: all are fetched, now they are unpacked"]
    assert (tmp_path / "here" / "second_one.py").exists()


def test_what_cannot_be_installed_ends_it_with_pips_own_words(tmp_path: Path) -> None:
    done = installed(tmp_path, wheel(tmp_path, "first_one").replace("sha256:", "sha256:0"))
    assert done.returncode != 0
    assert "ERROR" in done.stderr
