"""Checksum agent (Triton: model repository agents): verifies a model's files against the checksums in its config.

    model_repository_agents { agents { name: "checksum" parameters { key: "MD5:1/model.onnx" value: "<hex>" } } }

SHA256: is offered beside Triton's MD5:, which detects accidents but no forgeries.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.repository import is_model_name, is_version_path

_KINDS = {"MD5": hashlib.md5, "SHA256": hashlib.sha256}


class Expected(NamedTuple):
    """Checksum of one file; `path` is in the model's folder."""

    kind: str
    path: str
    digest: str


def expected(written: Any, model: str) -> tuple[Expected, ...]:
    """Return the checksums in a ModelConfig message; raises ModelError for other agents and invalid parameters."""
    return tuple(_expected(written, model))


def check(folder: Path, checksums: tuple[Expected, ...], version: int) -> None:
    """Check the files of one version and those that all versions share; raises ModelError for the first mismatch.

    Files of other versions are checked when those are loaded.
    """
    for kind, path, digest in checksums:
        if is_version_path(path) and not path.startswith(f"{version}/"):
            continue
        try:
            with (folder / path).open("rb") as content:
                found = hashlib.file_digest(content, partial(_KINDS[kind], usedforsecurity=False)).hexdigest()
        except OSError as error:
            raise ModelError(f"its {kind} checksum for file {path} cannot be checked: {error.strerror}") from error
        if found != digest.lower():
            raise ModelError(f"mismatched {kind} checksum for file {path}: it is {found}, expected {digest}")


def _expected(written: Any, model: str) -> Iterator[Expected]:
    where = f"model '{model}': model_repository_agents"
    for agent in written.model_repository_agents.agents:
        if agent.name != "checksum":
            raise ModelError(f"{where}: agent '{agent.name}' is not supported; supported is checksum")
        for key in sorted(agent.parameters):
            kind, _, path = key.partition(":")
            parts = PurePosixPath(path).parts
            if kind not in _KINDS or not parts or not all(map(is_model_name, parts)):
                raise ModelError(f"{where}: parameter '{key}' is not MD5:<file> or SHA256:<file>")
            yield Expected(kind, path, agent.parameters[key])
