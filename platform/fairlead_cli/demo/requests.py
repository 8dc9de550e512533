"""Request log of the traffic process, read while it is written: one `Request` per line."""

import json
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the client saw it; times in Unix seconds, `revision` is empty without an answer."""

    at: float
    ended_at: float
    protocol: str
    revision: str
    ok: bool
    message: str
    label: int | None
    truth: int

    @property
    def correct(self) -> bool:
        """Return whether the predicted label is the true one."""
        return self.label == self.truth


_FIELDS = tuple(field.name for field in fields(Request))


class RequestLog:
    """All requests so far; `read` adds those written since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.requests: list[Request] = []

    def read(self) -> list[Request]:
        """Return the new requests; an incomplete line is left for the next call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        new = [Request(**{name: row[name] for name in _FIELDS}) for row in map(json.loads, whole.splitlines())]
        self.requests += new
        return new
