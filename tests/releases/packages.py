"""What lies here of releases as they first were: the chart, and the serving runtime that came with it."""

import shutil
import site
import sys
import tarfile
from pathlib import Path

from serving_runtime import shared

_FIRST = Path(__file__).parent / "0.1.0"
FIRST_CHART = _FIRST / "fairlead-0.1.0.tgz"


def first_runtime(folder: Path) -> dict[str, str]:
    """Unpack the first release's runtime; returns variables with which `python -m serving_runtime` is that one."""
    with tarfile.open(_FIRST / "serving_runtime-0.1.0.tar.xz") as package:
        package.extractall(folder, filter="data")
    # It is found before the installed one, and the folder that a process is started in is not looked at.
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def python_with_first_runtime(folder: Path) -> Path:
    """Make a virtual environment; return its Python, which has what this one has, but the first release's runtime.

    What the control plane itself imports of the runtime's package is the present one's.
    """
    own, made = Path(sys.prefix), folder / "environment"
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_bytes((own / "pyvenv.cfg").read_bytes())
    python = made / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    packages = made / Path(site.getsitepackages()[0]).relative_to(own)
    packages.mkdir(parents=True)
    found_first = first_runtime(folder / "package")["PYTHONPATH"]
    shutil.copytree(Path(shared.__file__).parent, Path(found_first, "serving_runtime", "shared"))
    there = [path for path in sys.path if Path(path).is_dir() and not Path(path).is_relative_to(sys.base_prefix)]
    (packages / "first.pth").write_text("\n".join([found_first, *site.getsitepackages(), *there]) + "\n")
    return python
