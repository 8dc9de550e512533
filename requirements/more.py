"""Prints what an image needs for further packages: the pins and hashes of all that they ask for beside what the image
has. docs/reference/images.md says what it is for.

Usage: python requirements/more.py IMAGE REQUIREMENT... > more.txt, such as `runtime-cpu onnx==1.23.2`. Packages are
found where pip's own settings say (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL). What the image has keeps its version; of
NVIDIA's libraries, which torch wants at versions of its own, those are taken that suit all who ask for them.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
PYTHON = (3, 11)
"""Debian 12's, for which packages are chosen."""

_PIN = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
_BESIDE_TORCH = re.compile(r"nvidia-(?!ml-py$)")


def main(image: str, requirements: list[str]) -> int:
    """Print the lock; raises SystemExit with a sentence where there is none to be made."""
    lock = IMAGES / f"{image}.txt"
    if not lock.exists():
        known = ", ".join(sorted(path.stem for path in IMAGES.glob("*.txt") if path.stem != "tools"))
        raise SystemExit(f"there is no image '{image}'; there are {known}")
    if sys.version_info[:2] != PYTHON or sys.platform != "linux":
        raise SystemExit(f"the images have Python 3.11 on Linux; run this with that, not {sys.version.split()[0]}")
    has = dict(_PIN.findall(lock.read_text()))
    print("\n".join(beside(resolved([*kept(has), *requirements]), has)))  # noqa: T201 - what it is for
    return 0


def resolved(requirements: Iterable[str]) -> list[dict[str, Any]]:
    """Return pip's report of what it would install; raises SystemExit with pip's reason where it cannot."""
    with tempfile.TemporaryDirectory() as scratch:
        wanted, report = Path(scratch, "wanted.txt"), Path(scratch, "report.json")
        wanted.write_text("\n".join(requirements) + "\n")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:", "--report", report, "-r", wanted]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"these do not go together, or were not found:\n{done.stderr.strip()}")
        found: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return found


def beside(found: Iterable[dict[str, Any]], has: dict[str, str]) -> list[str]:
    """Return the lock lines of those packages in pip's report that an image has not, by name."""
    lines = []
    for each in found:
        name = re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower()
        version, digest = each["metadata"]["version"], each["download_info"]["archive_info"]["hashes"]["sha256"]
        if has.get(name) != version:
            lines.append(f"{name}=={version} --hash=sha256:{digest}")
    return sorted(lines)


def kept(has: dict[str, str]) -> list[str]:
    """Return the requirements of an image that further packages have to live with."""
    asks = {"onnxruntime-gpu": "[cuda,cudnn]"}
    return [f"{name}{asks.get(name, '')}=={version}" for name, version in has.items() if not _BESIDE_TORCH.match(name)]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
