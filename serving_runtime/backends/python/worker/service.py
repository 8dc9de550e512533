"""Command loop of the worker's main thread: inspect the model, initialize it, run it, finalize it."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from serving_runtime.backends.python.worker import annotated, triton_utils
from serving_runtime.backends.python.worker.annotated_model import AnnotatedModel, completed
from serving_runtime.backends.python.worker.connection import Connection
from serving_runtime.backends.python.worker.model_config import ModelConfig
from serving_runtime.backends.python.worker.triton_model import CLASS_NAME, TritonModel

_OWN_CLASS_NAMES = ("Model", "Transformer")


class MistakeError(Exception):
    """The model's file is invalid; the message is a sentence."""


class Service:
    """Executes the server's commands, until the last.

    Args:
        file: the model's, in its version's folder.
    """

    def __init__(self, connection: Connection, file: Path) -> None:
        self._connection = connection
        self._file = file
        self._model: TritonModel | AnnotatedModel | None = None

    def run(self) -> None:
        """Return once the model is finalized."""
        while True:
            message, tensors = self._connection.work.get()
            if message["do"] == "execute":
                assert self._model is not None, "the server initializes before it asks"  # noqa: S101
                self._model.execute(message["requests"], tensors, explain=message["explain"])
                continue
            try:
                answer = self._answer(message)
            except Exception as error:
                self._connection.send({"do": "failed", "message": _sentence(error)})
            else:
                self._connection.send({"do": "done", **answer})
            if message["do"] == "finalize":
                return

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["do"]:
            case "complete":
                return {"config": self._completed(message["config"])}
            case "initialize":
                self._model = self._made(message)
                return {"explains": self._model.explains}
            case "finalize":
                if self._model is not None:
                    self._model.finalize()
        return {}

    def _completed(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return the config as completed by the model."""
        source = self._source()
        if not _is_tritons(source):
            return completed(source, config)
        complete = getattr(source, "auto_complete_config", None)
        if complete is None:
            return config
        filled = complete(ModelConfig(config))
        if not isinstance(filled, ModelConfig):
            raise MistakeError(f"auto_complete_config must return the config, found {type(filled).__name__}")
        return filled.as_dict()

    def _made(self, message: dict[str, Any]) -> TritonModel | AnnotatedModel:
        source = self._source()
        if _is_tritons(source):
            return TritonModel(source, message["arguments"], decoupled=message["decoupled"])
        if message["decoupled"]:
            raise MistakeError(f"a decoupled model must be written as a {CLASS_NAME}")
        return AnnotatedModel(source, batched=message["batched"])

    def _source(self) -> Any:
        """Return the model's class, or its module where that has `predict`; raises MistakeError."""
        module = _imported(self._file)
        for name in (CLASS_NAME, *_OWN_CLASS_NAMES):
            if hasattr(module, name):
                return getattr(module, name)
        if hasattr(module, "predict"):
            return module
        raise MistakeError(
            f"{self._file.name} has neither a class {CLASS_NAME}, nor a class {' or '.join(_OWN_CLASS_NAMES)}, nor a "
            "function predict"
        )


def _is_tritons(source: Any) -> bool:
    return getattr(source, "__name__", "") == CLASS_NAME or hasattr(source, "execute")


def _imported(file: Path) -> Any:
    """Return the model's module, imported as part of its version's folder, which is on the import path too."""
    sys.modules["triton_python_backend_utils"] = triton_utils
    sys.modules["fairlead_python"] = annotated
    for folder in (file.parent, file.parent.parent):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return importlib.import_module(f"{file.parent.name}.{file.stem}")


def _sentence(error: Exception) -> str:
    if isinstance(error, MistakeError):
        return str(error)
    traceback.print_exc()
    return f"{type(error).__name__}: {error}"
