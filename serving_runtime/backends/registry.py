"""Backends by the name that config.pbtxt gives them: the built-in ones, and the operator's own.

An operator's backend is DIR/<name>/backend.py under --backend-directory: a module with `BACKEND`, an object as
base.Backend describes it. It runs with the server's rights, and is imported only when a model's config names it.
"""

import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from serving_runtime.errors import ModelError

if TYPE_CHECKING:
    from serving_runtime.backends.base import Backend  # brings numpy; the command line is read with this module

BUILT_IN = {
    "onnxruntime": ("serving_runtime.backends.onnxruntime", "OnnxRuntimeBackend"),
    "python": ("serving_runtime.backends.python.backend", "PythonBackend"),
}

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def find(name: str, directory: Path | None, settings: Mapping[str, str]) -> "Backend":
    """Return a backend, its library or module imported.

    Args:
        directory: --backend-directory; None where there is none.
        settings: --backend-config of this backend.

    Raises ModelError where there is no such backend, or it does not import, or it does not take the settings.
    """
    built_in = BUILT_IN.get(name)
    if built_in is not None:
        module, attribute = built_in
        return cast("Backend", getattr(importlib.import_module(module), attribute)(settings))
    file = own_file(name, directory)
    if file is None or not file.is_file():
        known = ", ".join(BUILT_IN)
        hint = f"; there is no {file}" if file is not None else "; --backend-directory may bring others"
        raise ModelError(f"backend '{name}' is not supported; supported is {known}{hint}")
    backend = _imported(file)
    if settings:
        configure = getattr(backend, "configure", None)
        if configure is None:
            raise ModelError(f"--backend-config={name}: this backend takes no settings: {file} has no configure()")
        configure(settings)
    return backend


def exists(name: str, directory: Path | None) -> bool:
    """Return whether there is a backend of the name, built in or the operator's."""
    file = own_file(name, directory)
    return name in BUILT_IN or (file is not None and file.is_file())


def own_file(name: str, directory: Path | None) -> Path | None:
    """Return where an operator's backend would be; None where the name or the command line leaves no place for it."""
    if directory is None or not _NAME.fullmatch(name):
        return None
    return directory / name / "backend.py"


@functools.cache
def _imported(file: Path) -> "Backend":
    name = f"fairlead_backend_{file.parent.name}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "a .py file always has a loader"  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
        return cast("Backend", module.BACKEND)
    except AttributeError as error:
        raise ModelError(f"backend '{file.parent.name}': {file} has no BACKEND: {error}") from error
    except Exception as error:
        raise ModelError(f"backend '{file.parent.name}': {file} cannot be imported: {error}") from error
