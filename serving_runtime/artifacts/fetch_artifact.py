"""Atomic, content-addressed fetch of one artifact: verified by its digest, complete or absent.

<place>/<hex>                      the artifact, moved here by one rename after its digest was checked
<place>/.incoming/<hex>/parts/…    what was received so far; the next attempt resumes it
<place>/.incoming/<hex>/content    its unpacked files; each attempt starts over
"""

import errno
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serving_runtime.artifacts.download import NoRoomError, Patience, Say, receive
from serving_runtime.artifacts.remotes import Remote
from serving_runtime.artifacts.unpack import digest_of, unpack, without_wrapping
from serving_runtime.common.errors import ModelError

INCOMING = ".incoming"


@dataclass(frozen=True, slots=True)
class Order:
    """Artifact to fetch.

    Attributes:
        digest: `sha256:<64 hex digits>`, which the files must have.
        remotes: returns its one file, without a path, or its files by their paths; called only where they are needed.
    """

    digest: str
    remotes: Callable[[], Sequence[Remote]]
    say: Say
    patience: Patience = field(default_factory=Patience)

    @property
    def hex(self) -> str:
        """Return the digest as a folder name."""
        return self.digest.removeprefix("sha256:")


def fetch(order: Order, place: Path, *, max_bytes: int | None = None) -> Path:
    """Return the artifact's folder in `place`, fetched where it is missing.

    Raises:
        ModelError: it is not available, or its digest differs; the received files are then removed.
        TooLargeError: it has more than `max_bytes`.
    """
    folder = place / order.hex
    if folder.is_dir():
        return folder
    work = place / INCOMING / order.hex
    is_resumed = work.exists()
    found = _received(order, work, max_bytes)
    if found != order.digest and is_resumed:  # the partial file may be of an earlier file at the same address
        order.say(f"the present artifact has the digest {found}, not {order.digest}; downloading it again")
        shutil.rmtree(work)
        found = _received(order, work, max_bytes)
    if found != order.digest:
        shutil.rmtree(work)
        raise ModelError(
            f"what was fetched is not the model that was registered: expected {order.digest}, found {found}; push the "
            "model version again"
        )
    (work / "content").rename(folder)
    shutil.rmtree(work)
    return folder


def _received(order: Order, work: Path, max_bytes: int | None) -> str:
    """Receive and unpack; return the digest of the files."""
    content = work / "content"
    shutil.rmtree(content, ignore_errors=True)
    files: dict[str, str] = {}
    left = max_bytes
    for remote in order.remotes():
        part = work / "parts" / (remote.path or "artifact")
        received = receive(remote, part, order.patience, order.say, max_bytes=left)
        left = None if left is None else left - part.stat().st_size
        if remote.path:
            files[remote.path] = received.sha256
        else:
            files = _unpacked(part, received.filename, received.sha256, content)
    if files and not content.exists():
        (work / "parts").rename(content)
        files = without_wrapping(content, files)
    return digest_of(files)


def _unpacked(part: Path, filename: str, sha256: str, content: Path) -> dict[str, str]:
    try:
        return unpack(part, filename, sha256, content)
    except ModelError:
        shutil.rmtree(content.parent)
        raise
    except OSError as error:
        shutil.rmtree(content.parent, ignore_errors=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoomError(
                f"there is no room in {content.parent} to unpack {filename}; give the volume twice the model's size"
            ) from error
        raise
