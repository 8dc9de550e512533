"""What lies here of releases as they first were: the chart, and the serving runtime that came with it."""

import tarfile
from pathlib import Path

_FIRST = Path(__file__).parent / "0.1.0"
FIRST_CHART = _FIRST / "fairlead-0.1.0.tgz"


def first_runtime(folder: Path) -> dict[str, str]:
    """Unpack the first release's runtime; returns variables with which `python -m serving_runtime` is that one."""
    with tarfile.open(_FIRST / "serving_runtime-0.1.0.tar.xz") as package:
        package.extractall(folder, filter="data")
    # It is found before the installed one, and the folder that a process is started in is not looked at.
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}
