"""Model loading: reads the config, opens the files, completes and checks the configuration. Runs in threads."""

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from serving_runtime import proto
from serving_runtime.backends import registry
from serving_runtime.backends.base import Backend, ParameterizedModel, RemoteModel, RequestModel, StreamingModel
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.support import PLATFORMS, refuse_unsupported
from serving_runtime.engine.catalog import checksums, labels
from serving_runtime.engine.catalog.checksums import Expected
from serving_runtime.engine.catalog.repository import CONFIG_FILENAME, ModelFolder, chosen_versions, version_bytes
from serving_runtime.engine.loading import auto_complete_config, ensembles, open_on_device, pool_rules, sequences
from serving_runtime.engine.loading.ensembles import EnsembleModel
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.loading.warmup_samples import run_samples
from serving_runtime.engine.memory.budget import LEAST_BYTES
from serving_runtime.engine.memory.process_memory import growth
from serving_runtime.engine.requests.classification import Labels

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Versions to open in a load.

    Attributes:
        written: the ModelConfig message as its author wrote it.
        versions: the policy's choice, ascending.
        file_bytes: the size of each version's files.
        checksums: expected ones of the files.
    """

    folder: ModelFolder
    written: Any
    versions: tuple[int, ...]
    file_bytes: Mapping[int, int]
    checksums: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """One version, loaded, with its completed configuration.

    Attributes:
        model: a StreamingModel where the config is decoupled, else a LoadedModel.
        initial_states: of a model of sequences, by the name of their inputs.
        memory_bytes: its measured memory.
        peak_bytes: the most it took during the load.
    """

    message: Any
    config: ModelConfig
    model: Any
    initial_states: Mapping[str, Array]
    labels: Labels
    memory_bytes: int = 0
    peak_bytes: int = 0


class VersionError(ModelError):
    """One version cannot be served; the message names it."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(message)
        self.version = version


def backend_for(name: str, settings: LoadSettings) -> Backend:
    """Return a backend by the name that config.pbtxt gives it; its library is imported here."""
    return registry.find(name, settings.backend_directory, settings.backend_settings.get(name, {}))


def plan(folder: ModelFolder, settings: LoadSettings, written: Any = None) -> LoadPlan:
    """Return the plan of a load, by the folder's config or by one given in its place.

    Raises ModelError for a config that cannot be honoured, and where it chooses no version.
    """
    if written is None:
        written = text.read(_config_file(folder, settings), folder.name)
    refuse_unsupported(written, folder.name)
    if written.name and written.name != folder.name:
        raise ModelError(f"model '{folder.name}': config.pbtxt names it '{written.name}'; it must be its folder's name")
    _check_plain(written.default_model_filename, f"model '{folder.name}': default_model_filename")
    for capability in written.cc_model_filenames:  # chosen by a GPU's compute capability; none here
        _check_plain(written.cc_model_filenames[capability], f"model '{folder.name}': cc_model_filenames")
    if not settings.auto_complete:
        auto_complete_config.check_complete(written, name=folder.name)
    versions = chosen_versions(folder.versions, written.version_policy, folder.name)
    sizes = {version: version_bytes(folder.marks, version) for version in versions}
    return LoadPlan(folder, written, versions, sizes, checksums.expected(written, folder.name))


def _config_file(folder: ModelFolder, settings: LoadSettings) -> Path:
    """Return the config to read (Triton: --model-config-name)."""
    own = folder.path / "configs" / f"{settings.config_name}.pbtxt"
    return own if settings.config_name and own.is_file() else folder.path / CONFIG_FILENAME


def _check_plain(filename: str, where: str) -> None:
    if filename and (filename != Path(filename).name or filename == ".."):
        raise ModelError(f"{where} '{filename}' must be a plain file name")


def open_versions(
    wanted: LoadPlan, versions: tuple[int, ...], settings: LoadSettings, loaded: Mapping[int, Any]
) -> dict[int, OpenedModel]:
    """Open a plan's versions, but for those that are `loaded` already; all of them or none.

    Raises VersionError with one sentence that names model and version; opened ones are then closed again.
    """
    opened: dict[int, OpenedModel] = {}
    for version in versions:
        try:
            if version not in loaded:
                _bring(wanted, version)
            backend = backend_of(wanted, version, settings)  # the library's memory is not the model's
            with growth() as grown:
                model = _open_version(wanted, version, backend, settings, loaded.get(version))
        except ModelError as error:
            for number in opened.keys() - loaded.keys():
                opened[number].model.close()
            raise VersionError(str(error), version) from error
        measured = max(wanted.file_bytes[version], grown.size_bytes or 0, LEAST_BYTES) + remote_bytes(model.model)
        opened[version] = dataclasses.replace(model, memory_bytes=measured, peak_bytes=grown.peak_bytes or 0)
    return opened


def remote_bytes(model: Any) -> int:
    """Return the memory of a model's own processes, 0 without any."""
    return model.resident_bytes if isinstance(model, RemoteModel) else 0


def _bring(wanted: LoadPlan, version: int) -> None:
    wanted.folder.bring(version)
    try:
        checksums.check(wanted.folder.path, wanted.checksums, version)
    except ModelError as error:
        raise ModelError(f"model '{wanted.folder.name}' version {version}: {error}") from error


def ensemble_config(wanted: LoadPlan) -> ModelConfig:
    """Return the configuration of a plan for an ensemble; raises ModelError."""
    return ModelConfig.from_message(ensembles.completed(wanted.written, wanted.folder.name))


def _open_ensemble(wanted: LoadPlan) -> OpenedModel:
    message = ensembles.completed(wanted.written, wanted.folder.name)
    config = ModelConfig.from_message(message)
    return OpenedModel(message, config, EnsembleModel(config), {}, labels.read(wanted.folder.path, message))


def backend_of(wanted: LoadPlan, version: int, settings: LoadSettings) -> Backend | None:
    """Return the backend of a model; an ensemble has none."""
    written = wanted.written
    if written.HasField("ensemble_scheduling"):
        return None
    try:
        name = backend_name(wanted, version, settings)
        open_on_device.check_origin(wanted.folder, name)
        if settings.pool is not None:
            filename, checked = written.default_model_filename, wanted.folder.checked
            pool_rules.check(name, filename, checked=checked, with_code=settings.pool.allowed)
        else:
            registry.check_code(name, allowed=settings.allow_python_models)
        return backend_for(name, settings)
    except ModelError as error:
        raise ModelError(f"model '{wanted.folder.name}' version {version}: {error}") from error


def backend_name(wanted: LoadPlan, version: int, settings: LoadSettings) -> str:
    """Return the config's backend, else the ending of a folder <name>.<backend>, else the one that fits the files."""
    written = wanted.written
    name: str = written.backend or PLATFORMS.get(written.platform, "")
    if not name and settings.auto_complete:
        ending = wanted.folder.name.rpartition(".")[2]
        name = ending if registry.exists(ending, settings.backend_directory) else ""
    return name or registry.backend_of(_files(wanted, version), wanted.folder.path / str(version)) or "onnxruntime"


def _files(wanted: LoadPlan, version: int) -> set[str]:
    """Return the names of the files and folders in a version's folder."""
    prefix = f"{version}/"
    return {path.removeprefix(prefix).rstrip("/") for path in wanted.folder.marks if path.startswith(prefix)}


def _open_version(
    wanted: LoadPlan, version: int, backend: Backend | None, settings: LoadSettings, loaded: Any
) -> OpenedModel:
    if backend is None:
        return _open_ensemble(wanted)
    name = wanted.folder.name
    where = f"model '{name}' version {version}"
    message = proto.ModelConfig()
    message.CopyFrom(wanted.written)
    message.name = name
    message.backend = backend_name(wanted, version, settings)
    if settings.pool is not None:
        pool_rules.save_memory(message)
    message.platform = message.platform or backend.platform
    message.default_model_filename = (
        message.default_model_filename
        or registry.filename_in(message.backend, _files(wanted, version))
        or backend.default_filename
    )
    try:
        names = labels.read(wanted.folder.path, message)
        open_on_device.settle(message, backend)
        model = loaded
        if model is None:
            model = open_on_device.open_model(message, backend, wanted.folder, version, settings)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    try:
        clients = sequences.clients_side(message, model.signature)
        if settings.auto_complete:
            most_rows = getattr(model, "max_batch_size", 0) or backend.default_max_batch_size
            auto_complete_config.complete(message, clients, name=name, default_max_batch_size=most_rows)
        config = ModelConfig.from_message(message)
        if config.sequences is not None and settings.one_of_several:
            raise ModelError(
                f"{where}: the requests of a sequence belong to one process, and this server has several "
                "(--workers, or one for each MIG slice); give it one"
            )
        config = replace(config, metrics=replace(config.metrics, summaries=settings.summaries))
        auto_complete_config.check_batch_inputs(message, model.signature)
        auto_complete_config.check_agrees(message, clients)
        _check_kind(config, model, f"{where}: backend '{message.backend}'")
        states: dict[str, Array] = {}
        if config.sequences is not None:
            sequences.check_schedulers_side(config.sequences, model.signature, name)
            states = sequences.initial_states(config.sequences, wanted.folder.path, name)
        if loaded is None:
            _warm_up(config, model, wanted.folder.path, states, where)
        return OpenedModel(message, config, model, states, names)
    except BaseException:
        if loaded is None:
            model.close()
        raise


def _warm_up(config: ModelConfig, model: Any, folder: Path, states: Mapping[str, Array], where: str) -> None:
    try:
        run_samples(config, model, folder, states)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def _check_kind(config: ModelConfig, model: Any, where: str) -> None:
    if config.decoupled and not isinstance(model, StreamingModel):
        raise ModelError(f"{where} answers a request once only, but model_transaction_policy.decoupled is set")
    if not config.decoupled and not hasattr(model, "run"):
        raise ModelError(f"{where} needs model_transaction_policy {{ decoupled: true }}")
    if config.cached and isinstance(model, (ParameterizedModel, RequestModel)):
        raise ModelError(
            f"{where} answers by the parameters of a request too, which response_cache does not look at; leave it out"
        )
