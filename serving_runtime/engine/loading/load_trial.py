"""Load trial: a process of its own loads a model before the server's process does.

    server                                   child, forked by `load_trial_server`
      | digest known to be good? -> done
      | backend, files, config, settings ->  limits and confines itself, loads, runs one row, writes an answer line
      | <-- the answer line, or its end by a signal, or its time is over
      | good: keep the digest

Libraries that read models are native code: an unexpected file can crash the process or hang it for ever. Files are
checked first (`backends`); what those checks miss crashes a child here, and the server goes on with its other models.
A file that takes over its child gains nothing: by Landlock and seccomp the child reads Python's packages and the
model, writes nothing and has no sockets, inside the server's own sandbox too. Digests of good trials are kept for the
life of the process, and in a folder over a restart.
"""

import base64
import contextlib
import hashlib
import importlib.metadata
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_runtime.backends.onnx.accelerators import OPERATORS
from serving_runtime.engine.loading.load_trial_client import FORK_SERVER
from serving_runtime.engine.loading.settings import LoadSettings

TRIED = ("fil", "lightgbm", "sklearn", "xgboost")
"""Backends whose files are tried at each load: their libraries trust their input."""

GRAPHS = ("onnxruntime", "openvino")
"""Backends of graphs, with weights beside their files, that are tried where a load could crash other models."""

ANSWER = "load-trial: "
"""Prefix of the child's answer line."""

_PACKAGES = (
    "fairlead",
    "lightgbm",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-openvino",
    "openvino",
    "scikit-learn",
    "skops",
    "xgboost",
    "xgboost-cpu",
)
_CODE = (".joblib", ".pickle", ".pkl")  # allowed code may do anything in the server anyway
_FOLDER = ".tried"
_TIME_S, _BYTES_PER_S = 60.0, 1 << 20
_good: set[str] = set()


@dataclass(frozen=True, slots=True)
class Trial:
    """One model to try.

    Attributes:
        file: the model's file or folder.
        config: its ModelConfig message.
        backend_settings: --backend-config of its backend.
        time_s: time limit; None for a minute, and a second more for each MiB of its files.
        memory_bytes: memory limit of load and first run; None for no limit but the machine's.
        op_libraries: of operators that it needs.
        on_gpu: whether it will run on a GPU: a refusal by the CPU, where it is tried, is then no error.
    """

    file: Path
    config: Any
    backend_settings: Mapping[str, str]
    time_s: float | None = None
    memory_bytes: int | None = None
    op_libraries: tuple[Path, ...] = ()
    on_gpu: bool = False

    @property
    def files(self) -> list[Path]:
        """Return the model's files: one, or where weights lie beside it, those of its folder."""
        if self.config.backend not in GRAPHS:
            return [self.file]
        found = (Path(folder, name) for folder, _, names in os.walk(self.file.parent) for name in names)
        return sorted(file for file in found if file.is_file())

    @property
    def folders(self) -> list[Path]:
        """Return folders that the library may list and read; `files` has the targets of links in them."""
        return [self.file.parent] if self.config.backend in GRAPHS else []

    @property
    def limit_s(self) -> float:
        return self.time_s or _TIME_S + sum(file.stat().st_size for file in self.files) / _BYTES_PER_S


def needs_trial(file: Path, backend: str, settings: LoadSettings) -> bool:
    """Return whether a model is tried before it is loaded."""
    tried = (*TRIED, *GRAPHS) if settings.guards_others else TRIED
    return settings.trial and backend in tried and file.suffix not in _CODE and file.exists()


def try_load(trial: Trial, cache_directory: Path | None) -> str | None:
    """Return why a model cannot be loaded, one sentence; None where it can, or could before."""
    digest = _digest(trial)
    mark = cache_directory / _FOLDER / digest if cache_directory is not None else None
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
    """Return why a new process cannot load a model; None where it can."""
    try:
        code, output = FORK_SERVER.run(question_of(trial))
    except TimeoutError:
        return (
            f"{trial.file.name} was not loaded in {trial.limit_s:.0f} s on trial and is refused; save the model again"
        )
    except OSError as error:
        return f"{trial.file.name} cannot be tried, since no process can be started: {error.strerror}"
    return _reading(code, output, trial.file.name)


def question_of(trial: Trial) -> dict[str, Any]:
    """Return what the child of a trial is asked."""
    return {
        "backend": trial.config.backend,
        "file": str(trial.file.absolute()),
        "read": [str(path.absolute()) for path in (*trial.folders, *trial.files, *trial.op_libraries)],
        "config": base64.b64encode(trial.config.SerializeToString()).decode(),
        "settings": _settings(trial),
        "limit_s": trial.limit_s,
        "memory_bytes": trial.memory_bytes,
        "on_gpu": trial.on_gpu,
        "op_libraries": [str(library.absolute()) for library in trial.op_libraries],
    }


def _settings(trial: Trial) -> dict[str, str]:
    """Return the settings of the backend without those that name places on disk: the trial writes nothing."""
    return {key: value for key, value in trial.backend_settings.items() if key not in OPERATORS}


def _reading(code: int, output: str, name: str) -> str | None:
    """Return the error in a child's output; None for an answer without one."""
    answers = [line for line in output.splitlines() if line.startswith(ANSWER)]
    if code == 0 and answers:
        error: str | None = json.loads(answers[-1].removeprefix(ANSWER))
        return error
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (
        f"{name} ended the process that loaded it on trial ({ended}): the file is damaged or made to harm, or memory "
        "or time is short; save the model again with the library's own save function"
    )


def _digest(trial: Trial) -> str:
    """Return the key of a good trial: the files, how they are loaded, and the versions of libraries."""
    found = hashlib.sha256()
    for file in (*trial.files, *trial.op_libraries):
        with file.open("rb") as content:
            found.update(hashlib.file_digest(content, "sha256").digest())
        found.update(repr(os.path.relpath(file, trial.file.parent)).encode())
    versions = []
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{package}={importlib.metadata.version(package)}")
    rest = (trial.file.name, sorted(trial.backend_settings.items()), versions, sys.version)
    config = type(trial.config)()
    config.CopyFrom(trial.config)
    config.ClearField("name")  # the same files may be served under several names
    found.update(repr(rest).encode() + config.SerializeToString(deterministic=True))
    return found.hexdigest()
