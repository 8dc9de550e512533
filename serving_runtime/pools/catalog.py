"""Catalog of a pool: one JSON document a model, looked up by its name; nothing lists it on the request path.

    <catalog>/<first two hex digits of sha256 of the name>/<namespace>.<service>.json
    {"schema": 1, "default": 3, "pinned": false,
     "versions": {"3": {"digest": "sha256:…", "origin": "s3://…", "config": {…}, "checked": true}}}

Documents are replaced by rename. Unknown members are ignored, so that an older fetcher reads a newer catalog.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from serving_runtime.common.errors import ModelError
from serving_runtime.pools.names import is_model, shown, version_of

SCHEMA = 1
MAX_BYTES = 1 << 20
"""Limit of one document."""
MAX_VERSIONS = 256
_MAX_ORIGIN = 4096
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model.

    Attributes:
        digest: `sha256:<64 hex digits>` of the artifact's files.
        origin: absolute path of a local folder or file, or an http(s)://, s3:// or gs:// URI.
        config: ModelConfig fields in place of the artifact's.
        checked: whether the files passed a check in a sandbox, so that they may be read beside other models.
    """

    digest: str
    origin: str
    config: Mapping[str, Any] = field(default_factory=dict)
    checked: bool = False

    @property
    def identity(self) -> str:
        """Return a text that changes with what would be loaded."""
        settled = json.dumps([self.config, self.checked], sort_keys=True)
        return hashlib.sha256(f"{self.digest}\0{settled}".encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Document:
    """What the catalog says of one model.

    Attributes:
        default: the version of requests that name none.
        pinned: whether its loaded versions stay in memory.
        versions: by number.
    """

    default: int
    pinned: bool
    versions: Mapping[int, Version]


class Catalog(Protocol):
    """Where a fetcher looks documents up."""

    async def find(self, model: str, *, newest: bool = False) -> Document | None:
        """Return a model's document, None where the catalog has none.

        Args:
            newest: as it is now, where a catalog keeps what it has read.

        Raises:
            ModelError: the document cannot be used.
            Unavailable: the catalog cannot be read now.
        """

    async def close(self) -> None:
        """Close what it has open."""


class Folder:
    """The documents of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    async def find(self, model: str, *, newest: bool = False) -> Document | None:  # noqa: ARG002
        """Return a model's document, None where the catalog has none; raises ModelError for an unusable one."""
        return find(self._folder, model)

    async def close(self) -> None:
        """Do nothing: no file stays open."""


def place(catalog: Path, model: str) -> Path:
    """Return the file of a model's document; `model` is a valid name (names.is_model)."""
    return catalog / hashlib.sha256(model.encode()).hexdigest()[:2] / f"{model}.json"


def find(catalog: Path, model: str) -> Document | None:
    """Return a model's document, None where the catalog has none; raises ModelError for an unusable one."""
    if not is_model(model):
        return None
    file = place(catalog, model)
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ModelError(f"the catalog's document {file} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as content:
        try:
            text = content.read(MAX_BYTES + 1)
        except OSError as error:
            raise ModelError(f"the catalog's document {file} cannot be read: {error.strerror}") from error
    if len(text) > MAX_BYTES:
        raise ModelError(f"the catalog's document of '{model}' has more than {MAX_BYTES} bytes; write a smaller one")
    return parse(text, model)


def parse(text: bytes, model: str) -> Document:
    """Return the document in a file; raises ModelError that names the member at fault."""
    where = f"the catalog's document of '{model}'"
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else content
        raise ModelError(f"{where} has schema {shown(str(found))}, this fetcher reads schema {SCHEMA}")
    versions = content.get("versions")
    if not isinstance(versions, dict) or not 0 < len(versions) <= MAX_VERSIONS:
        raise ModelError(f"{where}: 'versions' must be an object of 1 to {MAX_VERSIONS} versions")
    found_versions = {}
    for name, written in versions.items():
        number = version_of(name)
        if number is None:
            raise ModelError(f"{where}: {shown(name)} is no version number of 1 to 18 digits")
        found_versions[number] = _version(written, f"{where}, version {number}")
    default, pinned = content.get("default"), content.get("pinned", False)
    if type(default) is not int or default not in found_versions:
        raise ModelError(f"{where}: 'default' is {shown(str(default))}, which is not one of its versions")
    if type(pinned) is not bool:
        raise ModelError(f"{where}: 'pinned' must be true or false")
    return Document(default, pinned, found_versions)


def _version(written: Any, where: str) -> Version:
    if not isinstance(written, dict):
        raise ModelError(f"{where}: it must be an object")
    digest, origin, config = written.get("digest"), written.get("origin"), written.get("config", {})
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ModelError(f"{where}: 'digest' is {shown(str(digest))}, not sha256:<64 hex digits>")
    if not isinstance(origin, str) or not 0 < len(origin) <= _MAX_ORIGIN or "\0" in origin:
        raise ModelError(f"{where}: 'origin' must be a path or URI of at most {_MAX_ORIGIN} characters")
    if config is not None and not isinstance(config, dict):
        raise ModelError(f"{where}: 'config' must be an object of ModelConfig fields")
    checked = written.get("checked", False)
    if type(checked) is not bool:
        raise ModelError(f"{where}: 'checked' must be true or false")
    return Version(digest, origin, config or {}, checked)
