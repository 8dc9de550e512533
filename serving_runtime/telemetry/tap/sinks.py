"""Where events go: a file of one JSON line each, or a URL that takes batches of them."""

from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import httpx

BATCH_TYPE = "application/cloudevents-batch+json"
_TIMEOUT_S = 10.0


class SinkError(Exception):
    """Events could not be written; the text says why."""


class Sink(Protocol):
    """Takes events, each a JSON object on one line, on the tap's own thread; raises SinkError."""

    def write(self, events: list[bytes]) -> None: ...
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

    def close(self) -> None:
        self._file.close()


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

    def close(self) -> None:
        self._client.close()


def open_sink(url: str, max_file_bytes: int) -> Sink:
    """Return the sink of a `file:`, `http:` or `https:` URL; raises ValueError or OSError with what is wrong."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        return FileSink(Path(unquote(parts.path)), max_file_bytes)
    if parts.scheme in ("http", "https") and parts.hostname:
        return HttpSink(url)
    raise ValueError(f"'{url}' is not a URL such as file:///var/log/payloads.jsonl or https://collector/events")
