"""From a model's folder to servables: read the config, open the file, complete, check, measure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_runtime import proto
from serving_runtime.backends import registry
from serving_runtime.backends.base import Backend, StreamingModel
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions, ModelConfig
from serving_runtime.config.support import PLATFORMS, refuse_unsupported
from serving_runtime.engine import completion
from serving_runtime.engine.repository import CONFIG_FILENAME, ModelFolder
from serving_runtime.errors import ModelError


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What the command line says about loading.

    Attributes:
        backend_settings: --backend-config, by backend.
        backend_directory: where the operator's own backends are.
    """

    auto_complete: bool = True
    backend_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    backend_directory: Path | None = None


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """One version, loaded, with its completed configuration.

    Attributes:
        model: a StreamingModel where the config says decoupled, else a LoadedModel.
    """

    message: Any
    config: ModelConfig
    model: Any


def backend_for(name: str, settings: LoadSettings) -> Backend:
    """Return a backend by the name that config.pbtxt gives it; its library is imported here."""
    return registry.find(name, settings.backend_directory, settings.backend_settings.get(name, {}))


def read_config(folder: ModelFolder, settings: LoadSettings) -> Any:
    """Return the model's ModelConfig message as written; raises ModelError for what cannot be honoured."""
    config = text.read(folder.path / CONFIG_FILENAME, folder.name)
    refuse_unsupported(config, folder.name)
    if config.name and config.name != folder.name:
        raise ModelError(f"model '{folder.name}': config.pbtxt names it '{config.name}'; it must be its folder's name")
    filename = config.default_model_filename
    if filename and (filename != Path(filename).name or filename == ".."):
        raise ModelError(f"model '{folder.name}': default_model_filename '{filename}' must be a plain file name")
    if not settings.auto_complete:
        completion.check_complete(config, name=folder.name)
    return config


def open_version(folder: ModelFolder, version: int, written: Any, settings: LoadSettings) -> OpenedModel:
    """Return one version of a model, loaded; raises ModelError with one sentence that names model and version."""
    message = proto.ModelConfig()
    message.CopyFrom(written)
    where = f"model '{folder.name}' version {version}"
    name = message.backend or PLATFORMS.get(message.platform, "onnxruntime")
    try:
        backend = backend_for(name, settings)
        message.backend = name
        message.platform = message.platform or backend.platform
        message.default_model_filename = message.default_model_filename or backend.default_filename
        file = _model_file(folder.path / str(version), message.default_model_filename)
        model = backend.load(file, BackendOptions.from_message(message))
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    if settings.auto_complete:
        completion.complete(
            message,
            model.signature,
            name=folder.name,
            default_max_batch_size=backend.default_max_batch_size,
        )
    message.name = folder.name
    config = ModelConfig.from_message(message)
    completion.check_agrees(message, model.signature)
    if config.decoupled and not isinstance(model, StreamingModel):
        raise ModelError(f"{where}: model_transaction_policy.decoupled: backend '{name}' answers a request once only")
    if not config.decoupled and not hasattr(model, "run"):
        raise ModelError(f"{where}: backend '{name}' needs model_transaction_policy {{ decoupled: true }}")
    return OpenedModel(message, config, model)


def _model_file(folder: Path, filename: str) -> Path:
    """Return the model's file, or the version's folder for a model that is one; raises ModelError where it is not."""
    if filename and not (folder / filename).is_file():
        raise ModelError(f"there is no {filename} in {folder}")
    return folder / filename
