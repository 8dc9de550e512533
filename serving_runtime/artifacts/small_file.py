"""Download of a small file from the control plane into memory, with the pod's token; retried on broken connections."""

import time
from pathlib import Path

from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.remotes import InterruptedTransferError
from serving_runtime.artifacts.web import WebFile
from serving_runtime.common.errors import ModelError


def read(
    url: str,
    token_file: Path | None,
    authority: Path | None,
    most_bytes: int,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> bytes:
    """Return the file; raises ModelError where it is refused, not available, or larger than `most_bytes`."""
    there = WebFile(url, token_file, authority)
    failures = 0
    while True:
        try:
            return _read(there, most_bytes)
        except InterruptedTransferError as error:
            failures += 1
            if failures == patience.tries:
                raise ModelError(str(error)) from error
            time.sleep(max(error.after_s, patience.wait_s(failures)))


def _read(there: WebFile, most_bytes: int) -> bytes:
    content = bytearray()
    with there.open(0) as opened:
        for piece in opened.pieces:
            content += piece
            if len(content) > most_bytes:
                raise ModelError(f"{there} has more than {most_bytes} bytes")
    return bytes(content)
