"""Label files of a model's outputs, one class a line (Triton: model configuration, label_filename)."""

from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.requests.classification import Labels

_MAX_BYTES = 64 * 1024 * 1024


def read(folder: Path, config: Any) -> Labels:
    """Return the labels of a ModelConfig message's outputs, without those that have no file.

    Raises ModelError for a file that is not inside the model's folder or cannot be read.
    """
    return {output.name: _lines(folder, output) for output in config.output if output.label_filename}


def _lines(folder: Path, output: Any) -> tuple[str, ...]:
    where = f"label_filename '{output.label_filename}' of output '{output.name}'"
    file = (folder / output.label_filename).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ModelError(f"{where} leaves the model's folder")
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ModelError(f"{where} is larger than {_MAX_BYTES} bytes")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))
