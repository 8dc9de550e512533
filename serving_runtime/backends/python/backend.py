"""Python backend: opens models with `backend: "python"`, `model.py` in the version's folder."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from serving_runtime.backends.python.calls import CallServer
from serving_runtime.backends.python.model import DecoupledPythonModel, ExplainingPythonModel, PythonModel
from serving_runtime.backends.python.pool import Pool
from serving_runtime.backends.python.process import WorkerProcess
from serving_runtime.backends.python.sandboxed import SandboxedWorker
from serving_runtime.common.errors import CodeNotAllowed, ModelError
from serving_runtime.config import text
from serving_runtime.config.instances import instance_groups
from serving_runtime.config.model import ALLOW_CODE, BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import ModelTensor, model_tensors
from serving_runtime.shared import privileges

_ELSEWHERE = "give the service replicas of its own"
_MOST_SANDBOXED = 8
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_COMPLETED = ("max_batch_size", "input", "output", "dynamic_batching", "model_transaction_policy")
"""Fields of its config that a model may fill in."""


class PythonBackend:
    """Starts the worker processes of a model."""

    platform = "python"
    default_filename = "model.py"
    default_max_batch_size = 0  # the model itself says whether it takes batches

    def __init__(self, settings: Mapping[str, str]) -> None:
        for key in settings:
            raise ModelError(f"--backend-config=python,{key}: the python backend has no settings")

    def load(self, file: Path, options: BackendOptions) -> PythonModel | DecoupledPythonModel:
        _check(options)
        config = options.config
        calls = CallServer()
        starting = _Starting(file, config, calls, options.sandboxed_bytes)
        pool: Pool[WorkerProcess] = Pool(starting.start, starting.where, starting.stop)
        if options.auto_complete:
            starting.complete(pool.ended)
        try:
            if options.sandboxed_bytes is not None and config.model_transaction_policy.decoupled:
                raise ModelError(f"it is decoupled, which a pool's models in Python cannot be; {_ELSEWHERE}")
            signature = signature_of(config)
            count = sum(group.count for group in instance_groups(config))
            if options.sandboxed_bytes is not None and count > _MOST_SANDBOXED:
                raise ModelError(f"instance_group has {count} instances, a pool's model in Python {_MOST_SANDBOXED}")
        except BaseException:
            starting.give_up()
            raise
        pool.open(count)
        batched = config.max_batch_size > 0
        if config.model_transaction_policy.decoupled:
            return DecoupledPythonModel(signature, pool, calls, batched=batched)
        kind = ExplainingPythonModel if starting.explains else PythonModel
        return kind(signature, pool, calls, batched=batched)


def _check(options: BackendOptions) -> None:
    """Raise CodeNotAllowed, or ModelError, unless the server may and can run the model's code as configured."""
    if options.sandboxed_bytes is not None:
        lacking = privileges.sandbox_lacks()
        if lacking:
            raise CodeNotAllowed(f"it is code, for whose sandbox this machine lacks something: {lacking}; {_ELSEWHERE}")
    elif not options.allow_python_models:
        raise CodeNotAllowed(f"backend 'python' runs code of the model's, which is not allowed here; {ALLOW_CODE}")
    if _ENVIRONMENT in options.parameters:
        raise ModelError(
            f"parameter '{_ENVIRONMENT}' asks for a Python environment of the model's own, which is not supported; "
            "install what the model needs beside the server"
        )
    if options.config.HasField("sequence_batching"):
        raise ModelError("sequence_batching of a model in Python is not supported")


class _Starting:
    """Starts workers of one model; the first one completes the config before it is initialized.

    Args:
        config: the ModelConfig message, filled in by `complete`.
        sandboxed_bytes: memory limit of each worker in its sandbox; None for none.

    Attributes:
        where: model and version in words.
        explains: whether the model has `explain`; known once a worker has started.
    """

    def __init__(self, file: Path, config: Any, calls: CallServer, sandboxed_bytes: int | None) -> None:
        self._file = file
        self._config = config
        self._calls = calls
        self._sandboxed_bytes = sandboxed_bytes
        self._first: WorkerProcess | None = None
        self._lock = threading.Lock()
        self._starting: set[WorkerProcess] = set()
        self._stopped = False
        self.explains = False
        self.where = f"model '{config.name}' version {file.parent.name}"

    def complete(self, on_end: Callable[[WorkerProcess], None]) -> None:
        """Let the model fill in its config; raises ModelError."""
        worker = self._first = self._worker(on_end)
        config = self._config
        try:
            found = worker.ask({"do": "complete", "config": text.as_json(config)}).get("config", {})
            for field in _COMPLETED:
                if field in found:
                    config.ClearField(field)
            json_format.ParseDict({field: found[field] for field in _COMPLETED if field in found}, config)
        except BaseException as error:
            self.give_up()
            if not isinstance(error, json_format.ParseError):
                raise
            raise ModelError(f"auto_complete_config made a config that cannot be used: {error}") from error

    def give_up(self) -> None:
        """End the worker that completed the config, unless it is in use."""
        if self._first is not None:
            self._first.stop()
            self._first = None

    def start(self, on_end: Callable[[WorkerProcess], None]) -> WorkerProcess:
        """Return a ready worker; raises ModelError."""
        worker, self._first = self._first or self._worker(on_end), None
        with self._lock:
            self._starting.add(worker)
        try:
            if self._stopped:
                raise ModelError("it is unloaded while its worker process starts")
            self.explains = worker.ask(self._initialize()).get("explains", False)
        except BaseException:
            worker.stop()
            raise
        finally:
            with self._lock:
                self._starting.discard(worker)
        return worker

    def stop(self) -> None:
        """End workers that are not ready yet: the model is unloaded."""
        self._stopped = True
        with self._lock:
            for worker in self._starting:
                worker.end("was ended, since the model is unloaded")

    def _worker(self, on_end: Callable[[WorkerProcess], None]) -> WorkerProcess:
        if self._sandboxed_bytes is None:
            return WorkerProcess(self._file, self.where, self._calls, on_end)
        return SandboxedWorker(self._file, self.where, self._calls, on_end, memory_bytes=self._sandboxed_bytes)

    def _initialize(self) -> dict[str, Any]:
        config, version = self._config, self._file.parent
        return {
            "do": "initialize",
            "arguments": {
                "model_config": json.dumps(text.as_json(config)),
                "model_instance_kind": "CPU",
                "model_instance_device_id": "0",
                "model_instance_name": f"{config.name}_0",
                "model_repository": str(version.parent),
                "model_version": version.name,
                "model_name": config.name,
            },
            "decoupled": config.model_transaction_policy.decoupled,
            "batched": config.max_batch_size > 0,
        }


def signature_of(config: Any) -> Signature:
    """Return the signature in a ModelConfig message; raises ModelError where it leaves tensors out."""
    for field in ("input", "output"):
        if not getattr(config, field):
            raise ModelError(f"neither config.pbtxt nor auto_complete_config names an {field} of the model")
    batched = config.max_batch_size > 0
    return Signature(
        inputs=_specs(model_tensors(config.input, config.name, "input", batched=batched), batched=batched),
        outputs=_specs(model_tensors(config.output, config.name, "output", batched=batched), batched=batched),
    )


def _specs(tensors: Iterable[ModelTensor], *, batched: bool) -> tuple[TensorSpec, ...]:
    batch = (-1,) if batched else ()
    return tuple(
        TensorSpec(
            tensor.name,
            tensor.datatype,
            (*batch, *(tensor.dims if tensor.reshape is None else tensor.reshape)),
            tensor.optional,
        )
        for tensor in tensors
    )
