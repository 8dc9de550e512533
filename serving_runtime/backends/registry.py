"""Backend registry: backends by their names in config.pbtxt, built-in ones and the operator's own.

An operator's backend is DIR/<name>/backend.py under --backend-directory: a module with `BACKEND`, an object as
base.Backend describes it. It runs with the server's rights, and is imported only when a model's config names it.
"""

import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from serving_runtime.common.errors import CodeNotAllowed, ModelError, NotInstalledError
from serving_runtime.shared.model_files import HEAD_BYTES, stored_name_by_content

if TYPE_CHECKING:
    from serving_runtime.backends.base import Backend  # imports numpy, which parsing the command line must not


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A backend of this package, whose library is imported when a model needs it.

    Attributes:
        extra: of the package fairlead, which installs the library.
        filenames: of a model's file or folder in its version's; the first that exists is opened.
        code: why its files are code, part of a sentence; empty where they are not.
    """

    module: str
    attribute: str
    extra: str
    filenames: tuple[str, ...]
    code: str = ""


BUILT_IN = {
    "onnxruntime": BuiltIn("onnx.backend", "OnnxRuntimeBackend", "serving-cpu", ("model.onnx",)),
    "openvino": BuiltIn(
        "openvino",
        "OpenVinoBackend",
        "openvino",
        ("model.xml", "model.savedmodel", "model.graphdef", "saved_model.pb", "model.onnx"),
    ),
    "pytorch": BuiltIn(
        "pytorch.backend",
        "PyTorchBackend",
        "torch",
        ("model.pt2", "model.pt"),
        code="opens programs of torch.export and TorchScript, which can read and write files and run code",
    ),
    "tensorrt": BuiltIn("tensorrt.backend", "TensorRtBackend", "tensorrt", ("model.plan",)),
    "xgboost": BuiltIn(
        "trees.xgboost",
        "XGBoostBackend",
        "xgboost",
        ("xgboost.ubj", "xgboost.json", "model.ubj", "model.json", "model.bst"),
    ),
    "lightgbm": BuiltIn("trees.lightgbm", "LightGBMBackend", "lightgbm", ("model.txt", "model.bst")),
    "sklearn": BuiltIn(
        "sklearn.backend", "SklearnBackend", "sklearn", ("model.skops", "model.joblib", "model.pkl", "model.pickle")
    ),
    "python": BuiltIn("python.backend", "PythonBackend", "serving", ("model.py",)),
    "fil": BuiltIn("trees.fil", "FilBackend", "", ("xgboost.json", "xgboost.ubj", "model.txt")),
}

_PACKAGE = "serving_runtime.backends"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def find(name: str, directory: Path | None, settings: Mapping[str, str]) -> "Backend":
    """Return a backend, its library or module imported.

    Args:
        directory: --backend-directory; None if unset.
        settings: --backend-config of this backend.

    Raises ModelError for an unknown backend, a failed import, or refused settings.
    """
    built_in = BUILT_IN.get(name)
    if built_in is not None:
        return cast("Backend", getattr(_module(name, built_in), built_in.attribute)(settings))
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


def check_code(name: str, *, allowed: bool) -> None:
    """Raise CodeNotAllowed for a backend whose files are code, where code is not allowed; imports no library."""
    built_in = BUILT_IN.get(name)
    if built_in is not None and built_in.code and not allowed:
        from serving_runtime.config.model import ALLOW_CODE  # noqa: PLC0415 - the command line is read with this module

        raise CodeNotAllowed(f"backend '{name}' {built_in.code}, which is not allowed here; {ALLOW_CODE}")


def exists(name: str, directory: Path | None) -> bool:
    """Return whether a backend of the name exists, built in or the operator's."""
    file = own_file(name, directory)
    return name in BUILT_IN or (file is not None and file.is_file())


def backend_of(files: Container[str], folder: Path) -> str:
    """Return the backend for a version's `folder` by its files and folders; empty where none matches.

    `model.bst` is a name of XGBoost and of LightGBM: its first bytes decide.
    """
    names = (name for name, known in BUILT_IN.items() if any(filename in files for filename in known.filenames))
    found = next(names, "")
    if found == "xgboost" and filename_in(found, files) == "model.bst":
        return "lightgbm" if _is_lightgbm(folder / "model.bst") else found
    return found


def _is_lightgbm(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return stored_name_by_content(content.read(HEAD_BYTES)) == "model.txt"
    except OSError:
        return False  # the backend that opens it reports the error


def filename_in(name: str, files: Container[str]) -> str:
    """Return the version's file that a built-in backend opens; empty where none matches."""
    known = BUILT_IN.get(name)
    return next((filename for filename in known.filenames if filename in files), "") if known is not None else ""


def own_file(name: str, directory: Path | None) -> Path | None:
    """Return the path of an operator's backend; None where the name or the command line allows none."""
    if directory is None or not _NAME.fullmatch(name):
        return None
    return directory / name / "backend.py"


def _module(name: str, built_in: BuiltIn) -> ModuleType:
    """Return a built-in backend's module; raises ModelError where its library is missing, or fails to import."""
    try:
        return importlib.import_module(f"{_PACKAGE}.{built_in.module}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(_PACKAGE):
            raise
        package = error.name.partition(".")[0]
        raise NotInstalledError(
            f"backend '{name}' needs the package {package}, which is not installed; "
            f"run: pip install 'fairlead[{built_in.extra}]'"
        ) from error
    except (ImportError, OSError) as error:  # such as a shared library that this system lacks
        raise NotInstalledError(f"backend '{name}': its library cannot be imported: {error}") from error


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
