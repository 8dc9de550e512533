"""Load override: a request's own config and files (Triton: model repository extension, load).

{"parameters": {"config": "<ModelConfig as JSON>", "file:1/model.onnx": <bytes>}}
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from google.protobuf import json_format

from serving_runtime import proto
from serving_runtime.common.errors import CodeNotAllowed, InvalidArgument, ModelError, NoRoom, NotAllowed, ServingError
from serving_runtime.config.text import MAX_CONFIG_BYTES
from serving_runtime.engine.catalog.repository import ModelFolder, is_model_name, local_marks, versions_in

FILE_PREFIX = "file:"


@dataclass(frozen=True, slots=True)
class Override:
    """Config and files in a load request.

    Attributes:
        config: a ModelConfig message in place of the folder's.
        files: by their path, in place of the model's whole folder; empty for the repository's.
    """

    config: Any
    files: Mapping[str, bytes]


def parse(model: str, config: str | None, files: Mapping[str, bytes]) -> Override | None:
    """Return the override in a load request, None for a request without one; raises InvalidArgument.

    Args:
        config: JSON of a ModelConfig.
        files: by their path in the model's folder, as "1/model.onnx".
    """
    if config is None:
        if files:
            raise InvalidArgument(f"failed to load '{model}', files need a 'config' parameter beside them")
        return None
    if not is_model_name(model):
        raise InvalidArgument(f"failed to load '{model}', this is no name for a model")
    for path in files:
        parts = PurePosixPath(path).parts
        if not parts or path != "/".join(parts) or "\0" in path or not all(is_model_name(part) for part in parts):
            raise InvalidArgument(f"failed to load '{model}', 'file:{path}' is not file:<version>/<file>")
    if files and not versions_in(files):
        raise InvalidArgument(f"failed to load '{model}', no file is in a version's folder, as in file:1/model.onnx")
    return Override(_config(model, config), files)


def refusal(error: ModelError, brought: Override | None) -> ServingError:
    """Return the client's error for a failed load: whether the request is at fault, or the server.

    Args:
        error: of any stage of the load; its causes are the original exceptions.
        brought: the request's override.
    """
    if any(isinstance(cause, CodeNotAllowed) for cause in _causes(error)):
        return NotAllowed(error.message)
    at_fault = brought is not None and not isinstance(error, NoRoom)
    unforeseen = error.__cause__ is not None and not isinstance(error.__cause__, ServingError)
    return InvalidArgument(error.message) if at_fault and not unforeseen else error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def materialize(model: str, files: Mapping[str, bytes]) -> ModelFolder:
    """Return a folder, private to this process, that holds the files; the caller removes it."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-model-"))
    try:
        for path, content in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InvalidArgument(f"failed to load '{model}', its files cannot be written: {error}") from error
    marks = local_marks(folder)
    return ModelFolder(model, folder, versions_in(marks), marks, temporary=True)


def _config(model: str, text: str) -> Any:
    config = proto.ModelConfig()
    if len(text) > MAX_CONFIG_BYTES:
        raise InvalidArgument(f"failed to load '{model}', its 'config' is larger than {MAX_CONFIG_BYTES} bytes")
    try:
        json_format.Parse(text, config, max_recursion_depth=32)
    except json_format.ParseError as error:
        raise InvalidArgument(f"failed to load '{model}', its 'config' is no ModelConfig in JSON: {error}") from error
    return config
