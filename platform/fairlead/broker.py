"""The file-system broker of the embedded mode, in which a worker that is told to stop notices at once.

Celery's blocking loop looks whether it should stop between two waits for messages of 2 s each, and waits once more
after it saw that: up to 4 s whenever `fairlead up` ends. The transport looks for files every 0.1 s anyway, so a
shorter wait costs nothing.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem

_LONGEST_WAIT_S = 0.2


class Transport(filesystem.Transport):
    """Kombu's, whose waits for messages are short."""

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> None:
        """Hand on one message; raises TimeoutError where none came for a short while, `timeout` at most."""
        wait_s = _LONGEST_WAIT_S if timeout is None else min(timeout, _LONGEST_WAIT_S)
        super().drain_events(connection, timeout=wait_s, **options)


def use() -> None:
    """Let URLs of the scheme `filesystem` mean this transport in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{Transport.__name__}"
