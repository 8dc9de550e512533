"""Catalog of a pool (`serving_runtime/pools/catalog.py`), which the agent writes: one document a model.

A service in a pool has one model, whose versions are those of its revisions.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from integrations.artifacts.store import folder_of
from integrations.clusters.base import DesiredRevision
from integrations.clusters.local.files import write_json

_SCHEMA = 1


class Catalog:
    """Documents in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, Mapping[str, Any]] = {}

    def put(self, model: str, revisions: Iterable[DesiredRevision]) -> None:
        """Make the catalog say what a model's versions are; without any it is removed.

        Args:
            model: `<namespace>.<service>`.
            revisions: in their order; the last version with a share is that of requests that name none.
        """
        found = list(revisions)
        if not found:
            self._written.pop(model, None)
            with suppress(FileNotFoundError):
                self._place(model).unlink()
            return
        default = max(found, key=lambda each: (each.weight_percent, int(each.model_version)))
        content = {
            "schema": _SCHEMA,
            "default": int(default.model_version),
            "versions": {each.model_version: _version(each) for each in found},
        }
        if self._written.get(model) != content:
            write_json(self._place(model), content)
            self._written[model] = content

    def _place(self, model: str) -> Path:
        return self._folder / hashlib.sha256(model.encode()).hexdigest()[:2] / f"{model}.json"


def _version(revision: DesiredRevision) -> dict[str, Any]:
    config = {"config": dict(revision.model_config)} if revision.model_config else {}
    origin = str(folder_of(revision.artifact_uri))
    return {"digest": revision.artifact_digest, "origin": origin, "checked": True, **config}  # READY: the registry did
