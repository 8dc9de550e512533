"""`platform/` must stay a source root: as a package it would hide the standard library's module of that name."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_platform_is_no_package() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists()


def test_the_standard_librarys_platform_wins_in_the_project_folder() -> None:
    # `python -c` puts the working folder first on the path, the worst case.
    code = "import sys; sys.path.append('platform'); import platform, uuid, fairlead; print(platform.python_version())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sys.version.split()[0]
