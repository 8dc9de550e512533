"""Whether a torch.export archive can be loaded without running what is pickled in it.

torch.export.load unpickles weights and constants that its JSON says are pickled, and sample inputs that are more than
tensors. An archive that has such parts is code.
"""

import io
import json
import zipfile
from pathlib import Path, PurePosixPath

import torch

from serving_runtime.config.model import ALLOW_CODE
from serving_runtime.errors import ModelError

_TENSORS = ("weight_", "tensor_")  # torch/export/pt2_archive/constants.py; other prefixes are objects


def check_without_code(file: Path) -> None:
    """Raise ModelError for a file that is no archive of torch.export, or that has pickled parts."""
    try:
        with zipfile.ZipFile(file) as archive:
            _check(archive, file.name)
    except zipfile.BadZipFile as error:
        raise ModelError(f"{file.name} is not a program of torch.export: {error}") from error
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror or error}") from error


def _check(archive: zipfile.ZipFile, name: str) -> None:
    names = archive.namelist()
    if len({entry.lower() for entry in names}) != len(names):
        raise ModelError(f"{name} has an entry twice")
    paths = [PurePosixPath(entry) for entry in names]
    if not any(path.name == "archive_format" for path in paths):
        raise ModelError(f"{name} is not a program of torch.export, as torch 2.9 and later save them")
    for path in paths:
        folder = path.parent.name
        if folder in ("weights", "constants") and path.suffix == ".json":
            _check_tensors(archive.read(str(path)), name)
        elif folder == "sample_inputs":
            _check_samples(archive.read(str(path)), name)


def _check_tensors(content: bytes, name: str) -> None:
    try:
        entries = json.loads(content)["config"].items()
        pickled = [key for key, entry in entries if entry["use_pickle"] or not entry["path_name"].startswith(_TENSORS)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(f"{name} is not a program of torch.export: the list of its tensors does not parse") from error
    if pickled:
        raise ModelError(f"{name}: '{pickled[0]}' is pickled, which is code; {ALLOW_CODE}")


def _check_samples(content: bytes, name: str) -> None:
    try:
        torch.load(io.BytesIO(content), weights_only=True)
    except Exception as error:
        raise ModelError(f"{name}: its sample inputs are more than tensors, which is code; {ALLOW_CODE}") from error
