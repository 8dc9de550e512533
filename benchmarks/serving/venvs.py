"""Virtual environments of the peers, outside the work tree: `$XDG_CACHE_HOME/fairlead` (or `~/.cache/fairlead`).

Named by the digest of what is in them, so that a changed pin is installed anew.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

_INSTALL_S = 1200


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """Return a Python that has the packages; raises RuntimeError, in one line, when they cannot be installed."""
    key = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead"
    folder = cache / f"peer-{name}-{key}"
    done = folder / ".complete"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *requirements]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S)
        except (subprocess.SubprocessError, OSError) as error:
            words = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            raise RuntimeError(f"pip could not install {' '.join(requirements)}: {words[-1][-200:]}") from error
        done.touch()
    return folder / "bin" / "python"
