"""Where events go: a file of one JSON line each, a folder of such files, or a URL that takes batches of events."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

import httpx

BATCH_TYPE = "application/cloudevents-batch+json"
_TIMEOUT_S = 10.0
_FULL_BYTES = 1 << 20
_OLD_S = 1.0


class SinkError(Exception):
    """Events could not be written; the text says why."""


class Sink(Protocol):
    """Takes events, each a JSON object on one line, on the tap's own thread; raises SinkError.

    `flush` hands on what was kept back; it is called when nothing came for a while, and before `close`.
    """

    def write(self, events: list[bytes]) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class FileSink:
    """Appends a line per event; a file that grew beyond its limit becomes `<name>.1`, in place of an earlier one."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = path.open("ab")

    def write(self, events: list[bytes]) -> None:
        size = sum([len(event) + 1 for event in events])
        try:
            if self._file.tell() and self._file.tell() + size > self._max_bytes:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = self._path.open("ab")
            for event in events:
                self._file.write(event)
                self._file.write(b"\n")
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: the file could not be opened again before
            raise SinkError(f"{self._path}: {error}") from error

    def flush(self) -> None:
        """Every write is handed on at once."""

    def close(self) -> None:
        self._file.close()


class FolderSink:
    """Puts files with a line per event into a folder for somebody who takes them away: they are whole and never change.

    Events gather in a hidden file that gets its name, by which files sort in time, when it is full or a second old.
    Events that are written together are in one file. Where nobody takes files away the oldest go.

    Args:
        max_bytes: of all files together; one with a large event may be larger.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._began = 0.0
        self._file: BinaryIO | None = self._opened()

    def write(self, events: list[bytes]) -> None:
        try:
            self._file = file = self._file or self._opened()
            if not file.tell():
                self._began = time.monotonic()
            file.writelines([event + b"\n" for event in events])
            if file.tell() >= _FULL_BYTES or time.monotonic() - self._began >= _OLD_S:
                self._publish(file)
        except OSError as error:
            raise SinkError(f"{self._folder}: {error}") from error

    def flush(self) -> None:
        try:
            if self._file is not None and self._file.tell():
                self._publish(self._file)
        except OSError as error:
            raise SinkError(f"{self._folder}: {error}") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._hidden.unlink(missing_ok=True)

    @property
    def _hidden(self) -> Path:
        return self._folder / ".open"

    def _opened(self) -> BinaryIO:
        """Begin a file; what a server that was killed left there is dropped, its last line may be half of one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(self._hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

    def _publish(self, file: BinaryIO) -> None:
        self._file = None
        file.close()
        self._hidden.replace(self._folder / f"{time.time_ns():020}.jsonl")
        sizes = {}
        for path in sorted(self._folder.glob("*.jsonl"), reverse=True):
            with suppress(FileNotFoundError):  # taken away just now
                sizes[path] = path.stat().st_size
                if len(sizes) > 1 and sum(sizes.values()) > self._max_bytes:
                    path.unlink()


class HttpSink:
    """Posts events in CloudEvents' batched JSON form."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.Client(timeout=_TIMEOUT_S)

    def write(self, events: list[bytes]) -> None:
        body = b"[" + b",".join(events) + b"]"
        try:
            answer = self._client.post(self._url, content=body, headers={"content-type": BATCH_TYPE})
        except httpx.HTTPError as error:
            raise SinkError(f"{self._url}: {error or type(error).__name__}") from error
        if not answer.is_success:
            raise SinkError(f"{self._url} answered {answer.status_code}")

    def flush(self) -> None:
        """Every write is handed on at once."""

    def close(self) -> None:
        self._client.close()


def open_sink(url: str, max_file_bytes: int) -> Sink:
    """Return the sink of a `file:`, `http:` or `https:` URL; raises ValueError or OSError with what is wrong."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        path = Path(unquote(parts.path))
        return FolderSink(path, max_file_bytes) if parts.path.endswith("/") else FileSink(path, max_file_bytes)
    if parts.scheme in ("http", "https") and parts.hostname:
        return HttpSink(url)
    raise ValueError(f"'{url}' is not a URL such as file:///var/log/payloads.jsonl or https://collector/events")
