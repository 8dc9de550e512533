"""Model import: fetches model files from a URI into the artifact store. Called by the registry.

No file is held in memory as a whole, no partial import stays in the store, and nothing is requested outside of the
operator's allowed prefixes (`common.uris`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from common.errors import InvalidInput, TooLarge, Unavailable
from common.uris import WEB, Address, check_allowed, parse
from integrations.artifacts.archives import Member
from integrations.artifacts.store import ArtifactStore, StoredArtifact, is_model_file
from integrations.sources import buckets, local, web
from integrations.sources.content import CHUNK_BYTES, Content, SourceFile
from serving_runtime.shared.model_files import ACCEPTED

Progress = Callable[[int, int | None], None]
"""Receives the bytes so far and the total, where known; what it raises ends the import."""


@dataclass(frozen=True, slots=True)
class Order:
    """An import to fetch.

    Attributes:
        filename: sets the format of a single file whose address does not; empty where it does.
        sha256: of a single file, in hex; empty where unknown.
        owner: names the work; leftovers of an earlier try in the store's working folder are removed first.
    """

    address: Address
    filename: str
    sha256: str
    owner: str
    timeout_s: float


def check(uri: str, allowed: Sequence[Address], *, filename: str = "", field: str = "uri") -> Address:
    """Return the checked address of an import; raises InvalidInput, before any request is sent."""
    address = parse(uri, field=field)
    check_allowed(address, allowed, field=field)
    buckets.check_installed(address.scheme)
    if address.scheme in WEB:
        web.files_at(address, allowed)
        name = filename or address.name
        if not is_model_file(name):
            raise InvalidInput(
                f"{field} names {name[:80]!r}, which does not say what it is; expected a model file ({ACCEPTED}) "
                "or an archive (*.tar, *.tar.gz, *.tgz, *.zip)",
                field=field,
            )
    return address


def fetch(order: Order, store: ArtifactStore, allowed: Sequence[Address], progress: Progress) -> StoredArtifact:
    """Fetch and store the files of an order, and return the artifact.

    Raises:
        InvalidInput, NotFound, TooLarge: it cannot be imported as it is.
        Unavailable: it broke off, or the store's disk is full; a retry may succeed.
    """
    address = order.address
    check_allowed(address, allowed)
    is_folder = address.is_folder or not is_model_file(order.filename or address.name)
    files = _files_at(address, allowed, is_folder=is_folder, max_files=store.max_files)
    meter = _Meter(order, progress, store.max_bytes, files)
    try:
        if [file.path for file in files] == [""]:
            return _one(order, store, files[0], meter)
        if order.sha256:
            raise InvalidInput(
                f"{address.shown} is a folder, and a sha256 is of one file; leave it out", field="sha256"
            )
        return store.put_folder(_members(files, meter), owner=order.owner)
    except OSError as error:
        raise Unavailable(f"the model files could not be stored: {error.strerror or error}") from error


def _files_at(address: Address, allowed: Sequence[Address], *, is_folder: bool, max_files: int) -> list[SourceFile]:
    if address.scheme == "file":
        return local.files_at(address, allowed, max_files=max_files)
    if address.scheme in ("s3", "gs"):
        return buckets.files_at(address, is_folder=is_folder, max_files=max_files)
    return web.files_at(address, allowed)


def _one(order: Order, store: ArtifactStore, file: SourceFile, meter: "_Meter") -> StoredArtifact:
    with store.begin(order.filename or order.address.name, owner=order.owner) as writer, file.open() as content:
        counted = meter.of(file, content)
        while piece := counted.read(CHUNK_BYTES):
            writer.write(piece)
        if order.sha256 and writer.sha256 != order.sha256:
            raise InvalidInput(
                f"the sha256 of {order.address.shown} is {writer.sha256}, but {order.sha256} was expected",
                field="sha256",
            )
        return writer.commit()


def _members(files: Sequence[SourceFile], meter: "_Meter") -> Iterator[Member]:
    for file in files:
        with file.open() as content:
            yield Member(file.path, meter.of(file, content))


class _Meter:
    """Counts incoming bytes over all files; ends an import that is too large, too long, or shorter than announced."""

    def __init__(self, order: Order, progress: Progress, max_bytes: int, files: Sequence[SourceFile]) -> None:
        self._order = order
        self._progress = progress
        self._max_bytes = max_bytes
        self._deadline = time.monotonic() + order.timeout_s
        self._done = 0
        sizes = [file.size_bytes for file in files if file.size_bytes is not None]
        self._total = sum(sizes) if len(sizes) == len(files) else None
        self._refuse_too_large(self._total)

    def of(self, file: SourceFile, content: Content) -> "_Counted":
        """Return the open file, with counting."""
        if self._total is None:
            self._total = content.size_bytes
            self._refuse_too_large(self._total)
        return _Counted(self, file.path, content)

    def count(self, size: int) -> None:
        """Count incoming bytes."""
        self._done += size
        self._refuse_too_large(self._done)
        if time.monotonic() > self._deadline:
            raise InvalidInput(
                f"{self._order.address.shown} did not come within {self._order.timeout_s:g} s ({self._done} bytes "
                "did); FAIRLEAD_IMPORT_TIMEOUT_S may allow more"
            )
        self._progress(self._done, self._total)

    def _refuse_too_large(self, size: int | None) -> None:
        if size is not None and size > self._max_bytes:
            raise TooLarge(
                f"{self._order.address.shown} has {size} bytes or more; {self._max_bytes} are allowed "
                "(FAIRLEAD_MAX_ARTIFACT_BYTES)"
            )


class _Counted:
    def __init__(self, meter: _Meter, path: str, content: Content) -> None:
        self._meter = meter
        self._path = path
        self._content = content
        self._done = 0

    def read(self, size: int = -1, /) -> bytes:
        piece = self._content.read(size)
        self._done += len(piece)
        expected = self._content.size_bytes
        if not piece and expected is not None and self._done != expected:
            raise Unavailable(f"{self._path or 'the file'} ended after {self._done} of {expected} bytes")
        self._meter.count(len(piece))
        return piece
