"""An environment as a user has it: the wheel, and of this environment's packages those that the wheel says it needs."""

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def environment(folder: Path, wheel: Path, *, extras: str = "") -> Path:
    """Install `wheel` into a new environment in `folder`, beside links to what it requires; return its `bin`.

    Args:
        extras: in brackets, as for pip, such as `[serving-cpu]`.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--isolated"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (installed,) = site.glob("fairlead-*.dist-info")
    needs = folder / "needs"
    needs.mkdir()
    for each in _needed(Distribution.at(installed), Requirement(f"fairlead{extras}").extras, set()):
        _link(each, needs)
    (site / "needs.pth").write_text(f"{needs}\n")
    # With its extras named, pip finds all of it and takes nothing from anywhere.
    subprocess.run([*pip, "install", "--quiet", "--no-index", f"fairlead{extras}"], check=True)
    return folder / "bin"


def run(command: list[str | Path], home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of an environment with nothing of ours around it."""
    return subprocess.run(
        command, check=False, env=surroundings(home), cwd=home, capture_output=True, text=True, timeout=120
    )


def surroundings(home: Path) -> dict[str, str]:
    """Return the variables of a shell in which nothing was set."""
    return {"PATH": os.defpath, "HOME": str(home)}


def _needed(of: Distribution, extras: set[str], seen: set[tuple[str, str]]) -> list[Distribution]:
    """Return what a distribution requires with these extras, and what that requires, as this environment has it."""
    found: list[Distribution] = []
    for line in of.requires or []:
        wanted = Requirement(line)
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        # An extra of the wheel may name another one of it.
        own = wanted.name == of.name
        key = (wanted.name.lower(), ",".join(sorted(wanted.extras)))
        if key not in seen:
            seen.add(key)
            inner = of if own else distribution(wanted.name)
            found += [*([] if own else [inner]), *_needed(inner, wanted.extras, seen)]
    return found


def _link(needed: Distribution, folder: Path) -> None:
    """Link the packages and modules of a distribution into `folder`, and what pip knows it by."""
    for top in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
        if not top.endswith(".pth") and not (folder / top).is_symlink():
            (folder / top).symlink_to(Path(str(needed.locate_file(top))))
