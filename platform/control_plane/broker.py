"""The file-system broker of the embedded mode: Kombu's, with two of its faults mended.

A message is there whole or not at all: Kombu's own may be read while it is still empty, and a worker that meets such a
one ends. And a worker that is told to stop notices at once: Celery's blocking loop looks whether it should stop between
two waits for messages of 2 s each, and waits once more after it saw that. The transport looks for files every 0.1 s
anyway, so a shorter wait costs nothing.
"""

import json
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem

_LONGEST_WAIT_S = 0.2


class Channel(filesystem.Channel):
    """Kombu's, whose messages come into the folder by rename."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override] # Kombu names it twice
        folder = Path(self.data_folder_out)
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        unfinished = folder / f".{name}.new"  # not a name that anybody looks for
        try:
            unfinished.write_text(json.dumps(payload), encoding="utf-8")
            unfinished.replace(folder / name)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise ChannelError(f"cannot add file {name!r} to {folder}: {error}") from error


class Transport(filesystem.Transport):
    """Kombu's, with this channel, whose waits for messages are short."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> None:
        """Hand on one message; raises TimeoutError where none came for a short while, `timeout` at most."""
        wait_s = _LONGEST_WAIT_S if timeout is None else min(timeout, _LONGEST_WAIT_S)
        super().drain_events(connection, timeout=wait_s, **options)


def use() -> None:
    """Let URLs of the scheme `filesystem` mean this transport in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{Transport.__name__}"
