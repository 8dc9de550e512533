"""The command `prepare`: a stored model into a model repository, before a server starts in the same pod.

What is stored is one model file, or one model's folder in Triton's layout; the model gets the name and the version it
is to be served by, and fields of its configuration are replaced. Exit 0, or 2 when it cannot be done.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format

from serving_runtime.config import text
from serving_runtime.errors import ModelError, ServingError
from serving_runtime.server.options import Parser

_CONFIG = "config.pbtxt"


def main(arguments: Sequence[str]) -> int:
    """Run `prepare`; returns the exit code."""
    parser = Parser(prog="fairlead-serve prepare", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--artifact", type=Path, required=True, metavar="DIR", help="where the model is stored")
    parser.add_argument("--digest", required=True, metavar="sha256:HEX", help="the digest its files must have")
    parser.add_argument("--name", required=True, help="what the model is to be served as")
    parser.add_argument("--version", required=True, metavar="N", help="the version it is to be served as")
    parser.add_argument(
        "--config", type=json.loads, default={}, metavar="JSON", help="fields of a ModelConfig to replace"
    )
    parser.add_argument("--model-repository", type=Path, required=True, metavar="DIR", help="where to lay it out")
    found = parser.parse_args(arguments[1:])
    try:
        check(found.artifact, found.digest)
        lay_out(found.artifact, found.model_repository / found.name, version=found.version, config=found.config)
    except (ServingError, OSError) as error:
        sys.stderr.write(f"fairlead-serve prepare: {error}\n")
        return 2
    return 0


def check(artifact: Path, digest: str) -> None:
    """Raise ModelError where the files of `artifact` are not those of `digest`.

    The digest is sha256 over the sorted lines `path NUL sha256 LF`.
    """
    if not artifact.is_dir():
        raise ModelError(f"there is no model at {artifact}; push the model version again")
    files = {path.relative_to(artifact).as_posix(): path for path in artifact.rglob("*") if path.is_file()}
    lines = "".join(f"{name}\0{_sha256(path)}\n" for name, path in sorted(files.items()))
    found = "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
    if found != digest:
        raise ModelError(f"the model at {artifact} is not the one that was stored: expected {digest}, found {found}")


def lay_out(artifact: Path, model: Path, *, version: str, config: dict[str, Any]) -> None:
    """Make the model folder `model`, whose name becomes the model's; what an interrupted run left there is replaced.

    Raises:
        ModelError: its config.pbtxt does not parse, or `config` has fields that a ModelConfig has not.
    """
    shutil.rmtree(model, ignore_errors=True)
    versions = [path for path in artifact.iterdir() if path.is_dir() and path.name.isdecimal()]
    newest = max(versions, key=lambda path: int(path.name), default=None)
    if newest is None:
        shutil.copytree(artifact, model / version, ignore=shutil.ignore_patterns(_CONFIG))
    else:
        shutil.copytree(artifact, model, ignore=shutil.ignore_patterns(_CONFIG, *(path.name for path in versions)))
        shutil.copytree(newest, model / version)
    if config or (artifact / _CONFIG).exists():
        written = _configured(artifact / _CONFIG, model.name, config)
        (model / _CONFIG).write_text(text_format.MessageToString(written), encoding="utf-8")


def _configured(file: Path, name: str, fields: dict[str, Any]) -> Any:
    config = text.read(file, name)
    for field in fields:
        if field in config.DESCRIPTOR.fields_by_name:
            config.ClearField(field)
    try:
        json_format.ParseDict(fields, config)
    except json_format.ParseError as error:
        raise ModelError(f"model '{name}': the given configuration cannot be used: {error}") from error
    config.name = name
    return config


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
