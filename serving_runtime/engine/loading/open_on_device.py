"""Opens a version's file by its backend, on each device of its config. Runs in threads."""

import dataclasses
import logging
from pathlib import Path
from typing import Any

from serving_runtime.backends.base import Backend
from serving_runtime.common.errors import CodeNotAllowed, ModelError
from serving_runtime.config.accelerators import Accelerator
from serving_runtime.config.instances import count_by_gpu, kind_of
from serving_runtime.config.model import BackendOptions
from serving_runtime.devices import nvml
from serving_runtime.engine.catalog.repository import ModelFolder
from serving_runtime.engine.loading import instance_placement
from serving_runtime.engine.loading.load_trial import Trial, needs_trial, try_load
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory import process_memory

logger = logging.getLogger(__name__)

_PLUGINS = "trt_extra_plugin_lib_paths"


def settle(config: Any, backend: Backend) -> None:
    """Write the devices of its instances into a ModelConfig message; raises ModelError where devices are missing.

    NVML is queried only for models that could run on a GPU.
    """
    capable = bool(getattr(backend, "runs_on_gpus", False))
    wanted = capable or any(kind_of(group) == "KIND_GPU" for group in config.instance_group)
    found = nvml.mine() if wanted else nvml.Found()
    instance_placement.settle(config, found.gpus, found.why_none, capable=capable)


def open_model(config: Any, backend: Backend, folder: ModelFolder, version: int, settings: LoadSettings) -> Any:
    """Return a settled model, open on its devices; raises ModelError."""
    options = _options(config, settings, folder)
    counts = count_by_gpu(config)

    def load(gpu: int | None) -> Any:
        filename: str = config.default_model_filename
        if gpu is not None:
            filename = str(config.cc_model_filenames.get(nvml.mine().gpus[gpu].capability, filename))
        file = _model_file(folder.path / str(version), filename)
        mine = dataclasses.replace(options, gpu=gpu, instance_count=counts[gpu])
        if needs_trial(file, config.backend, settings):
            _try(file, mine, settings)
        return _load(backend, file, mine, f"model '{folder.name}' version {version}", settings.retry_count)

    opened = instance_placement.spread(counts, load)
    if _fell_back(config, backend):
        logger.warning("model '%s' runs on the CPU, since there is no GPU: %s", folder.name, nvml.mine().why_none)
    return opened


def _try(file: Path, options: BackendOptions, settings: LoadSettings) -> None:
    """Run the load trial of a model; raises ModelError where it fails."""
    config = options.config
    trial = Trial(
        file,
        config,
        settings.backend_settings.get(config.backend, {}),
        memory_bytes=options.memory_bytes,
        op_libraries=options.op_libraries,
        on_gpu=options.gpu is not None,
    )
    error = try_load(trial, settings.cache_directory)
    if error is not None:
        raise ModelError(error)


def _fell_back(config: Any, backend: Backend) -> bool:
    """Return whether a GPU-capable model falls back to the CPU for lack of a GPU, as its config allows."""
    asks_for_neither = all(kind_of(group) == "KIND_AUTO" for group in config.instance_group)
    return asks_for_neither and bool(getattr(backend, "runs_on_gpus", False)) and not nvml.mine().gpus


def _options(config: Any, settings: LoadSettings, folder: ModelFolder) -> BackendOptions:
    options = BackendOptions.from_message(config)
    filenames = config.model_operations.op_library_filename
    return dataclasses.replace(
        options,
        op_libraries=tuple(
            _library(name, "model_operations.op_library_filename", config, settings) for name in filenames
        ),
        gpu_accelerators=tuple(_with_plugins(each, config, settings) for each in options.gpu_accelerators),
        config=config,
        auto_complete=settings.auto_complete,
        allow_python_models=settings.allow_python_models and not folder.temporary,
        sandboxed_bytes=settings.pool.memory_bytes if settings.pool is not None and settings.pool.allowed else None,
        memory_bytes=settings.memory_bytes or process_memory.limit_bytes(),
    )


def _library(filename: str, what: str, config: Any, settings: LoadSettings) -> Path:
    """Return a library that a config names; raises ModelError where it is not the operator's own.

    Code in files that came with a request is never run.
    """
    if settings.backend_directory is None:
        raise ModelError(
            f"{what} '{filename}' is code; it must be in the folder {config.backend} of --backend-directory, "
            "which is not given"
        )
    folder: Path = (settings.backend_directory / config.backend).resolve()
    library = (folder / filename).resolve()
    if not library.is_relative_to(folder) or not library.is_file():
        raise ModelError(f"{what} '{filename}' is not a file in {folder}")
    return library


def _with_plugins(accelerator: Accelerator, config: Any, settings: LoadSettings) -> Accelerator:
    """Return an accelerator whose plugin libraries, which are code, are the operator's own."""
    names = [name for name in accelerator.parameters.get(_PLUGINS, "").split(";") if name]
    if not names:
        return accelerator
    paths = ";".join(str(_library(name, _PLUGINS, config, settings)) for name in names)
    return Accelerator(accelerator.name, {**accelerator.parameters, _PLUGINS: paths})


def check_origin(folder: ModelFolder, backend: str) -> None:
    """Raise CodeNotAllowed for a backend whose files are code, where they came with a request."""
    if folder.temporary and backend in ("python", "pytorch"):
        raise CodeNotAllowed("its files came with the request; code runs only where it lies in a model repository")


def _load(backend: Backend, file: Path, options: BackendOptions, where: str, retry_count: int) -> Any:
    for attempt in range(retry_count):
        try:
            return _load_once(backend, file, options)
        except ModelError as error:
            logger.warning("%s: %s; trying again (%d of %d)", where, error, attempt + 1, retry_count)
    return _load_once(backend, file, options)


def _load_once(backend: Backend, file: Path, options: BackendOptions) -> Any:
    try:
        return backend.load(file, options)
    except ModelError:
        raise
    except Exception as error:  # any exception of an operator's backend is that model's failure
        raise ModelError(f"its backend failed to load it: {type(error).__name__}: {error}") from error


def _model_file(folder: Path, filename: str) -> Path:
    """Return the model's file, or the version's folder for a model that is one; raises ModelError if it is absent."""
    if filename and not (folder / filename).exists():
        raise ModelError(f"there is no {filename} in {folder}")
    return folder / filename
