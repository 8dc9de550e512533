"""File-system broker of the embedded mode: Kombu's, with two of its faults fixed.

Messages are written atomically: Kombu's own may be read while still empty, which ends the reading worker. And a
stopping worker notices at once: Celery's blocking loop checks for it between two waits for messages of 2 s each, and
waits once more after it. The transport polls for files every 0.1 s anyway, so a shorter wait costs nothing.
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
        unfinished = folder / f".{name}.new"  # a name that no reader matches
        try:
            unfinished.write_text(json.dumps(payload), encoding="utf-8")
            unfinished.replace(folder / name)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise ChannelError(f"cannot add file {name!r} to {folder}: {error}") from error


class Transport(filesystem.Transport):
    """Kombu's, with this channel and short waits for messages."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> None:
        """Deliver one message; raises TimeoutError where none came for a short while, `timeout` at most."""
        wait_s = _LONGEST_WAIT_S if timeout is None else min(timeout, _LONGEST_WAIT_S)
        super().drain_events(connection, timeout=wait_s, **options)


def use() -> None:
    """Register this transport for the scheme `filesystem` in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{Transport.__name__}"
