"""Builds the front end into `frontend/dist/`; called by the Makefile with the virtual environment's Python.

Node.js comes from the machine where it is recent enough, else from PyPI (`requirements/node.txt`, into the same virtual
environment), so that a machine with Python alone can build everything.

Usage: python frontend/build.py [--check]
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
OLDEST_NODE_MAJOR = 18


def main() -> int:
    """Install the locked packages if they changed, then build or check; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the front end into frontend/dist/.")
    parser.add_argument("--check", action="store_true", help="check types instead of building")
    arguments = parser.parse_args()
    environment = {**os.environ, "PATH": f"{_node_folder()}{os.pathsep}{os.environ.get('PATH', '')}"}
    if _packages_are_stale():
        _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], environment)
    _run(["npm", "run", "--silent", "check" if arguments.check else "build"], environment)
    return 0


def _node_folder() -> Path:
    """Return the folder of a recent enough `node` and `npm`, from PyPI where the machine has none."""
    found = shutil.which("node")
    if found and shutil.which("npm") and _major(found) >= OLDEST_NODE_MAJOR:
        return Path(found).parent
    folder = Path(sys.executable).parent
    if not (folder / "npm").exists():
        reason = f"Node.js {_major(found)} is too old" if found else "No Node.js on this machine"
        sys.stdout.write(f"{reason}; installing one from PyPI into {folder.parent.name}/\n")
        lock = ROOT / "requirements" / "node.txt"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
        ]
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
    return folder


def _major(node: str) -> int:
    version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
    return int(version.strip().lstrip("v").split(".")[0])


def _packages_are_stale() -> bool:
    # npm writes this file last, so it is there only after a complete install.
    installed = FOLDER / "node_modules" / ".package-lock.json"
    return not installed.exists() or installed.stat().st_mtime < (FOLDER / "package-lock.json").stat().st_mtime


def _run(command: list[str], environment: dict[str, str]) -> None:
    completed = subprocess.run(command, cwd=FOLDER, env=environment, check=False)
    if completed.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {completed.returncode}; its output is above.")


if __name__ == "__main__":
    raise SystemExit(main())
