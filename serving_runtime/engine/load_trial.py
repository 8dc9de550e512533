"""A model loaded on trial, in a process of its own, before the server's process loads it.

    server                                   python -m serving_runtime.engine.load_trial
      | digest known to be good? -> done
      | backend, file, config, settings -->  limits and confines itself, loads, runs one row, writes an answer line
      | <-- the answer line, or its end by a signal, or its time is over
      | good: keep the digest

Libraries that read models are native code: a file that they do not expect can end the process or hold it for ever.
What the files say is checked first (`backends`); what those checks do not know ends a child here, and the server goes
on with its other models. A file that takes over its child finds nothing there: by Landlock and seccomp the child reads
Python's packages and the file, writes nothing and has no sockets, inside the server's own sandbox too. Digests that
were good are kept for as long as the process lives, and in a folder over a restart.
"""

import base64
import contextlib
import ctypes
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime import proto
from serving_runtime.backends import registry
from serving_runtime.config.model import BackendOptions
from serving_runtime.datatypes import BYTES
from serving_runtime.engine.load_settings import LoadSettings
from serving_runtime.errors import ServingError
from serving_runtime.shared import landlock, seccomp

TRIED = ("fil", "lightgbm", "sklearn", "xgboost")
"""Backends whose files are tried: start and import cost about a second, and the libraries trust what they read."""

_PACKAGES = ("fairlead", "lightgbm", "numpy", "scikit-learn", "skops", "xgboost", "xgboost-cpu")
_CODE = (".joblib", ".pickle", ".pkl")  # what is allowed to be code may do in the server what it likes
_ANSWER = "load-trial: "
_FOLDER = ".tried"
_TIME_S, _BYTES_PER_S = 60.0, 1 << 20
_MEMORY_BYTES, _TIMES_FILE = 8 << 30, 16
_DIES_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38  # prctl: PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS
_SYSTEM = ("/bin", "/etc/ld.so.cache", "/etc/localtime", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/usr")
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
_good: set[str] = set()


@dataclass(frozen=True, slots=True)
class Trial:
    """What is loaded.

    Attributes:
        file: of the model.
        config: its ModelConfig message.
        backend_settings: --backend-config of its backend.
        time_s: how long it may take; None for a minute, and a second more for each MiB of the file.
    """

    file: Path
    config: Any
    backend_settings: Mapping[str, str]
    time_s: float | None = None

    @property
    def limit_s(self) -> float:
        return self.time_s or _TIME_S + self.file.stat().st_size / _BYTES_PER_S


def try_load(file: Path, config: Any, settings: LoadSettings) -> str | None:
    """Return why a model cannot be loaded, one sentence; None where it can, or where it is not tried.

    Args:
        config: the ModelConfig message with its backend.
    """
    if config.backend not in TRIED or file.suffix in _CODE or not file.is_file() or not settings.trial:
        return None
    trial = Trial(file, config, settings.backend_settings.get(config.backend, {}))
    digest = _digest(trial)
    mark = settings.cache_directory / _FOLDER / digest if settings.cache_directory is not None else None
    if digest in _good or (mark is not None and mark.is_file()):
        return None
    error = run(trial)
    if error is None:
        _good.add(digest)
        if mark is not None:
            with contextlib.suppress(OSError):  # it is tried again at the next start
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
    return error


def run(trial: Trial) -> str | None:
    """Return why a model cannot be loaded by a new process; None where it was loaded there."""
    question = {
        "backend": trial.config.backend,
        "file": str(trial.file.absolute()),
        "config": base64.b64encode(trial.config.SerializeToString()).decode(),
        "settings": dict(trial.backend_settings),
        "limit_s": trial.limit_s,
        "parent": os.getpid(),
    }
    command = [sys.executable, "-P", "-m", "serving_runtime.engine.load_trial"]
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}  # memory that is limited
    try:
        done = subprocess.run(
            command,
            input=json.dumps(question),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=trial.limit_s,
            env={**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)},
        )
    except subprocess.TimeoutExpired:
        return (
            f"{trial.file.name} was not loaded in {trial.limit_s:.0f} s on trial and is refused; save the model again"
        )
    except OSError as error:
        return f"{trial.file.name} cannot be tried, since no process can be started: {error.strerror}"
    return _reading(done.returncode, done.stdout, trial.file.name)


def _reading(code: int, output: str, name: str) -> str | None:
    """Return the error in a child's output; None where it answered that there is none."""
    answers = [line for line in output.splitlines() if line.startswith(_ANSWER)]
    if code == 0 and answers:
        error: str | None = json.loads(answers[-1].removeprefix(_ANSWER))
        return error
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (
        f"{name} ended the process that loaded it on trial ({ended}): the file is damaged or made to harm, or memory "
        "or time is short; save the model again with the library's own save function"
    )


def _digest(trial: Trial) -> str:
    """Return what a good trial is remembered by: the file, how it is loaded, and by which versions."""
    with trial.file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256")
    versions = []
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{package}={importlib.metadata.version(package)}")
    rest = (trial.file.name, sorted(trial.backend_settings.items()), versions, sys.version)
    found.update(repr(rest).encode() + trial.config.SerializeToString(deterministic=True))
    return found.hexdigest()


def main() -> int:
    """Load the model that standard input names, and answer with an error or null; the child's side."""
    question = json.load(sys.stdin)
    file = Path(question["file"])
    _limit(question["limit_s"], file.stat().st_size)
    if question["parent"] != os.getppid():
        return 1
    config = proto.ModelConfig.FromString(base64.b64decode(question["config"]))
    error = None
    try:
        backend = registry.find(question["backend"], None, question["settings"])
        _confine(file)  # its library has been imported, from wherever the machine has it
        options = dataclasses.replace(BackendOptions.from_message(config), config=config)
        _run_once(backend.load(file, options))
    except ServingError as found:
        error = str(found)
    sys.stdout.write(f"\n{_ANSWER}{json.dumps(error)}\n")
    return 0


def _limit(limit_s: float, file_bytes: int) -> None:
    """Limit this process: no core, no files, memory and processor time by the file; it ends with its parent."""
    memory, seconds = _MEMORY_BYTES + _TIMES_FILE * file_bytes, int(limit_s) + 1
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
    }
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # rather this process than the server


def _confine(file: Path) -> None:
    """Leave this process what a load needs: what Python imports from, and the file. What a kernel lacks is left out."""
    libc = ctypes.CDLL(None)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")]
    with contextlib.suppress(OSError):
        landlock.restrict(
            read=[*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *libraries, str(file)],
            listed=(),
            write=(),
            devices=_DEVICES,
            connect=False,
        )
    with contextlib.suppress(OSError):
        seccomp.install(unix=False, connects=False, sockets=False)


def _run_once(model: Any) -> None:
    """Run a model on a row of zeros and one without values: compiled code follows a file's numbers only then."""
    (spec,) = model.signature.inputs
    rows = [0.0, float("nan")] if spec.datatype.dtype.kind == "f" else [0]
    if spec.datatype is BYTES:
        return  # the load itself has asked for the answer to a text
    with contextlib.suppress(ServingError):  # an estimator may refuse what has no value
        for value in rows:
            model.run([np.full((1, spec.shape[1]), value, spec.datatype.dtype)])


if __name__ == "__main__":
    sys.exit(main())
