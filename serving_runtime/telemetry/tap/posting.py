"""Batch sink: posts CloudEvents to a URL in their batched JSON form.

Batches that get no response, or one of overload, are retried with back-off; meanwhile further events wait in the tap,
which is bounded. Refused batches are given up at once.
"""

import random
import ssl
import time
from pathlib import Path

import httpx

from serving_runtime.telemetry.tap.sinks import Event, SinkError
from serving_runtime.telemetry.tap.writing import written

BATCH_TYPE = "application/cloudevents-batch+json"
PATIENCE_S = 15.0
_TIMEOUT_S = 10.0
_GATHER_S = 1.0
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_AGAIN = frozenset({401, 408, 425, 429})  # 401: the token was replaced a moment ago


class RefusedError(SinkError):
    """The receiver will never accept the events."""


class HttpSink:
    """Posts events, one batch per second.

    Args:
        token_file: holds a bearer token, read for each batch since it may be replaced; None for no token.
        ca_file: certificate authorities to trust; None for the default ones.
        patience_s: how long a batch is retried before it is given up.
    """

    gather_s = _GATHER_S

    def __init__(
        self,
        url: str,
        token_file: Path | None = None,
        *,
        ca_file: Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._url = url
        self._token_file = token_file
        self._patience_s = patience_s
        verify = True if ca_file is None else ssl.create_default_context(cafile=ca_file)
        self._client = httpx.Client(timeout=_TIMEOUT_S, verify=verify)

    def write(self, events: list[Event]) -> None:
        self.send(b"[" + b",".join([written(event) for event in events]) + b"]")

    def send(self, body: bytes) -> None:
        """Post a batch in JSON; raises SinkError, and RefusedError where a retry is useless."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while problem := self._posted(body):
            pause_s = min(pause_s, deadline - time.monotonic())
            if pause_s <= 0:
                raise SinkError(problem)
            time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - so that replicas do not come all at once
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def flush(self) -> None:
        """Does nothing: every write is sent at once."""

    def close(self) -> None:
        self._client.close()

    def _posted(self, body: bytes) -> str:
        """Return the reason of a retryable failure; raises RefusedError for a permanent one."""
        headers = {"content-type": BATCH_TYPE}
        try:
            if self._token_file is not None:
                headers["authorization"] = f"Bearer {self._token_file.read_text().strip()}"
            answer = self._client.post(self._url, content=body, headers=headers)
        except (OSError, httpx.HTTPError) as error:
            return f"{self._url}: {error or type(error).__name__}"
        if answer.is_success:
            return ""
        problem = f"{self._url} answered {answer.status_code}"
        if answer.status_code in _AGAIN or answer.status_code >= 500:
            return problem
        raise RefusedError(problem)
