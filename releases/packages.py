"""The Python packages of a release: wheel and source archive of command line and serving runtime, by hatchling.

Hatchling gives all entries the time SOURCE_DATE_EPOCH, so that one commit makes the same bytes again.
"""

import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Mapping
from email.parser import HeaderParser
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from releases.errors import ReleaseError
from releases.source import Source


def build(source: Source, folder: Path) -> Path:
    """Write wheel and source archive into a folder; returns the wheel's path."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(source.made_s)}
    done = subprocess.run(command, cwd=source.tree, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"hatchling cannot build the packages: {(done.stderr or done.stdout).strip()[-300:]}")
    (wheel,) = folder.glob("fairlead-*.whl")
    return wheel


def requirements(wheel: Path) -> list[str]:
    """Return what a wheel requires without extras, such as `httpx>=0.28`."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]


def tools() -> Mapping[str, str]:
    """Return the versions of what decides about the bytes that are built, besides the commit."""
    return {"hatchling": version("hatchling"), "python": python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
