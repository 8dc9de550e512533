"""Foreign V2 clients that cannot live in the project's virtual environment, and a Go for who has none, kept in a cache
outside the work tree.

The cache is `$XDG_CACHE_HOME/fairlead` (or `~/.cache/fairlead`); what is in it is named by the digest of its pins, so
that a changed pin is fetched anew.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.servers import network
from tests.servers.parts import MissingPartError, cache

PINS = Path(__file__).parents[2] / "requirements" / "clients"
_PIP = ("--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:")
_FETCH_S = 600


class PerfAnalyzer(NamedTuple):
    """Triton's load generator: the program, and the environment it runs in."""

    program: Path
    environment: dict[str, str]

    def measured(self, model: str, protocol: str, url: str, *flags: str) -> str:
        """Return what it prints of two requests at a time; asserts that at least fifty succeeded, on both sides."""
        command = [str(self.program), "-m", model, "-i", protocol, "-u", url, "--concurrency-range=2"]
        done = subprocess.run(
            [*command, *flags], env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        client, _, server = done.stdout.partition("Server:")
        assert int(re.findall(r"Request count: (\d+)", client)[0]) >= 50
        assert int(re.findall(r"Successful request count: (\d+)", server)[0]) >= 50
        assert done.stderr == ""
        return done.stdout


def perf_analyzer() -> PerfAnalyzer:
    """Return perf_analyzer; raises MissingPartError when it is not cached and cannot be fetched."""
    folder = _cached("perf-analyzer", _unpack_perf_analyzer)
    return PerfAnalyzer(folder / "perf_analyzer", {"LD_LIBRARY_PATH": str(folder)})


def kserve_python() -> Path:
    """Return a Python that imports KServe's client; raises MissingPartError when it cannot be installed."""
    return _cached("kserve", _install_kserve) / "bin" / "python"


def go() -> Path:
    """Return a Go of the pinned version; raises MissingPartError when it is not cached and cannot be fetched."""
    return _cached("go", _install_go) / "go" / "bin" / "go"


def _cached(name: str, fill: Callable[[Path, Path], None]) -> Path:
    pins = PINS / f"{name}.txt"
    key = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache() / f"{name}-{key}"
    done = folder / ".complete"  # a virtual environment cannot be renamed into place: its scripts hold its path
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            fill(pins, folder)
        except (subprocess.SubprocessError, OSError, KeyError) as error:
            detail = getattr(error, "stderr", "") or str(error)
            raise MissingPartError(f"{name} could not be fetched by pip: {detail.strip()[-300:]}") from error
        done.touch()
    return folder


def _unpack_perf_analyzer(pins: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        _pip(sys.executable, "download", *_PIP, "--no-deps", "--dest", scratch, "--requirement", str(pins))
        for wheel in Path(scratch).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.namelist():
                    name = member.rpartition("/")[2]
                    if name == "perf_analyzer":
                        _write(folder / name, archive.read(member))
                    elif name.startswith(
                        ("libb64-", "libcudart-")
                    ):  # renamed by the wheel: the loader wants the soname
                        soname = "libb64.so.0d" if name.startswith("libb64") else "libcudart.so.12"
                        _write(folder / soname, archive.read(member))


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o755)


def _install_kserve(pins: Path, folder: Path) -> None:
    venv.create(folder, with_pip=True)
    _pip(str(folder / "bin" / "python"), "install", *_PIP, "--requirement", str(pins))


def _install_go(pins: Path, folder: Path) -> None:
    _pip(sys.executable, "install", *_PIP, "--no-deps", "--target", str(folder), "--requirement", str(pins))


def _pip(python: str, *arguments: str) -> None:
    command = network.outside(python, "-m", "pip", *arguments)
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_FETCH_S)
