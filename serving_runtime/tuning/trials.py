"""Runs trials: the real server in its own process with the setting's configuration, and a load generator beside it."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format

from serving_runtime.common.errors import ModelError
from serving_runtime.common.isolation import interpreter
from serving_runtime.config import text
from serving_runtime.tuning.measurement import Load, Measurement, Trial
from serving_runtime.tuning.space import Setting

_CONFIG = "config.pbtxt"
_START_S, _END_S, _LOOK_EVERY_S = 180.0, 30.0, 0.02
_LOAD_SPARE_S = 60.0

Fields = Callable[[Setting], Mapping[str, Any]]


class Rig:
    """One server at a time, kept while trials use the same setting. To be closed.

    Args:
        model: the model's folder; it is not changed, its files are linked.
        scratch: an empty folder.
        config_name: begins with the model's `configs/NAME.pbtxt` if present, as `--model-config-name` does.
    """

    def __init__(self, model: Path, scratch: Path, *, allow_python_models: bool, config_name: str = "") -> None:
        self._model, self._scratch = model, scratch
        self._flags = [f"--allow-python-models={str(allow_python_models).lower()}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._setting: Setting | None = None
        self._port = 0
        own = model / "configs" / f"{config_name}.pbtxt"
        self.written = text.read(own if config_name and own.is_file() else model / _CONFIG, model.name)

    def served_config(self) -> dict[str, Any]:
        """Return the model's configuration as the server completes it, and leave the server running with it.

        Raises ModelError where it cannot be served.
        """
        self._start({})
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v2/models/{self._model.name}/config") as answer:
            config: dict[str, Any] = json.load(answer)
        return config

    def measure(self, trial: Trial, fields: Mapping[str, Any], call: bytes, seconds: float) -> Measurement:
        """Return the measurement of a trial; where its server does not start or refuses, why."""
        try:
            if self._process is None or self._setting != trial.setting:
                self._start(fields)
                self._setting = trial.setting
            return Measurement(trial, self._load(trial.concurrency, call, seconds))
        except ModelError as error:
            self.close()
            return Measurement(trial, None, str(error))

    def close(self) -> None:
        """End the server."""
        self._setting = None
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def config_text(self, fields: Mapping[str, Any]) -> str:
        """Return the model's own config.pbtxt with the fields replaced."""
        config = type(self.written)()
        config.CopyFrom(self.written)
        for field in fields:
            config.ClearField(field)
        json_format.ParseDict(dict(fields), config)
        written: str = text_format.MessageToString(config)
        return written

    def _start(self, fields: Mapping[str, Any]) -> None:
        self.close()
        repository, ports, log = (self._scratch / name for name in ("repository", "ports.json", "log"))
        shutil.rmtree(repository, ignore_errors=True)
        ports.unlink(missing_ok=True)
        lay_out(self._model, repository / self._model.name, self.config_text(fields))
        flags = [
            f"--model-repository={repository}",
            "--http-address=127.0.0.1",
            "--http-port=0",
            "--exit-timeout-secs=5",
        ]
        flags += [
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--log-info=false",
            f"--port-file={ports}",
            *self._flags,
        ]
        with log.open("wb") as output:
            command = [*interpreter(), "-m", "serving_runtime", *flags]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + _START_S
        while not ports.exists():
            if self._process.poll() is not None:
                raise ModelError(_last_line(log))
            if time.monotonic() > deadline:
                self.close()
                raise ModelError(f"the server did not start within {_START_S:g} s: {_last_line(log)}")
            time.sleep(_LOOK_EVERY_S)
        self._port = json.loads(ports.read_text())["http"]

    def _load(self, concurrency: int, call: bytes, seconds: float) -> Load:
        file = self._scratch / "request"
        file.write_bytes(call)
        command = [*interpreter(), "-m", "serving_runtime.tuning.load", str(self._port), str(concurrency)]
        try:
            done = subprocess.run(
                [*command, str(seconds), str(file)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30 * seconds + _LOAD_SPARE_S,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise ModelError(f"the load of {concurrency} at once ended without an answer: {error}") from error
        found = json.loads(done.stdout)
        if "error" in found:
            raise ModelError(f"a request made up for it failed with {found['error']}")
        return Load(**found)


def lay_out(model: Path, target: Path, config: str) -> None:
    """Make a model folder with another's files, linked where possible, and its own configuration."""
    shutil.copytree(model, target, ignore=shutil.ignore_patterns("__pycache__"), copy_function=_link)
    own = target / _CONFIG
    own.unlink(missing_ok=True)  # it may be a link to the model's
    own.write_text(config, encoding="utf-8")


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _last_line(log: Path) -> str:
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].removeprefix("fairlead-serve: ")
    return "the server ended without a word"
