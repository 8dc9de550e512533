"""Opens models written in Python: `backend: "python"`, `model.py` in the version's folder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serving_runtime.backends.python.model import PythonModel
from serving_runtime.backends.python.pool import Pool
from serving_runtime.backends.python.process import WorkerProcess
from serving_runtime.backends.python.signature import signature_of
from serving_runtime.config import text
from serving_runtime.config.instances import instance_groups
from serving_runtime.config.model import BackendOptions
from serving_runtime.errors import ModelError, ServingError

_ENVIRONMENT = "EXECUTION_ENV_PATH"


class PythonBackend:
    """Starts the worker processes of a model."""

    platform = "python"
    default_filename = "model.py"
    default_max_batch_size = 4

    def __init__(self, settings: Mapping[str, str]) -> None:
        for key in settings:
            raise ModelError(f"--backend-config=python,{key}: the python backend has no settings")

    def load(self, file: Path, options: BackendOptions) -> PythonModel:
        _check(options)
        config = options.config
        where = f"model '{config.name}' version {file.parent.name}"
        signature = signature_of(config)
        count = sum(group.count for group in instance_groups(config))
        pool: Pool[WorkerProcess] = Pool(_starting(file, config, where), where)
        pool.open(count)
        reshaped = frozenset(tensor.name for tensor in config.output if tensor.HasField("reshape"))
        return PythonModel(signature, pool, reshaped)


def _check(options: BackendOptions) -> None:
    """Raise ModelError unless the server may run the model's code, and can as it asks."""
    if not options.allow_python_models:
        raise ModelError(
            "backend 'python' runs code of the model's; start the server with --allow-python-models=true to allow it"
        )
    if _ENVIRONMENT in options.parameters:
        raise ModelError(
            f"parameter '{_ENVIRONMENT}' asks for a Python environment of the model's own, which is not supported; "
            "install what the model needs beside the server"
        )
    if options.config.HasField("sequence_batching"):
        raise ModelError("sequence_batching of a model in Python is not supported")


def _starting(file: Path, config: Any, where: str) -> Callable[[Callable[[WorkerProcess], None]], WorkerProcess]:
    """Return what starts a worker that is ready for requests."""
    message = {
        "do": "initialize",
        "arguments": {
            "model_config": json.dumps(text.as_json(config)),
            "model_instance_kind": "CPU",
            "model_instance_device_id": "0",
            "model_instance_name": f"{config.name}_0",
            "model_repository": str(file.parent.parent),
            "model_version": file.parent.name,
            "model_name": config.name,
        },
        "decoupled": config.model_transaction_policy.decoupled,
    }

    def start(on_end: Callable[[WorkerProcess], None]) -> WorkerProcess:
        worker = WorkerProcess(file, where, on_end)
        try:
            worker.ask(message)
        except ServingError:
            worker.stop()
            raise
        return worker

    return start
