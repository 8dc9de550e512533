"""Upload of a folder to the control plane, with the pod's token: one tar archive, retried on broken connections.

Another container, which opened a model, wrote the folder: links are refused, since they could lead to the token.
"""

import hashlib
import os
import ssl
import stat
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx

from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.remotes import InterruptedTransferError
from serving_runtime.artifacts.web import WebFile, refusal_of
from serving_runtime.common.errors import ModelError

_CHUNK_BYTES = 1 << 20
_TIMEOUT = httpx.Timeout(300.0, connect=10.0)  # the receiver unpacks an archive before it responds


def bring(
    folder: Path,
    url: str,
    token_file: Path | None,
    authority: Path | None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> None:
    """Send the folder's files as a tar archive, by PUT.

    Raises:
        ModelError: they are refused or cannot be sent, or the folder has something else than files and folders.
    """
    there = WebFile(url, token_file, authority)
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for path in _files(folder):
                packed.add(path, path.relative_to(folder).as_posix(), recursive=False)
        archive.seek(0)
        sha256 = hashlib.file_digest(archive, "sha256").hexdigest()
        for failures in range(1, patience.tries + 1):
            try:
                return _put(there, archive, sha256)
            except InterruptedTransferError as error:
                if failures == patience.tries:
                    raise ModelError(f"what was built could not be brought back: {error}") from error
                time.sleep(max(error.after_s, patience.wait_s(failures)))
    return None


def _files(folder: Path) -> list[Path]:
    """Return the folder's files, at any depth; raises ModelError for a link, a socket or a device."""
    found = []
    for above, folders, names in os.walk(folder):
        for path in (Path(above, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise ModelError(f"{path.relative_to(folder)} is no file; only files and folders can be sent")
            if stat.S_ISREG(mode):
                found.append(path)
    return sorted(found)


def _put(there: WebFile, archive: IO[bytes], sha256: str) -> None:
    length = archive.seek(0, 2)
    archive.seek(0)
    headers = {
        **there.headers(),
        "Content-Type": "application/octet-stream",
        "Content-Length": str(length),
        "X-Content-SHA256": sha256,
    }
    verify = True if there.authority is None else ssl.create_default_context(cafile=str(there.authority))
    try:
        with (
            httpx.Client(timeout=_TIMEOUT, verify=verify) as client,
            client.stream("PUT", there.url, headers=headers, content=_pieces(archive)) as answer,
        ):
            if not answer.is_success:
                raise refusal_of(there, answer)
    except httpx.HTTPError as error:
        raise InterruptedTransferError(f"{there} cannot be reached: {error or type(error).__name__}") from error


def _pieces(archive: IO[bytes]) -> Iterator[bytes]:
    while piece := archive.read(_CHUNK_BYTES):
        yield piece
