"""OTLP collector of spans, for runtime and control plane: its address, and an exporter that reports an outage once.

    takes spans --a batch fails--> is away: one warning --a batch is taken--> takes spans: one line

It imports no OpenTelemetry: who has the SDK gives the exporter.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

VARIABLE = "FAIRLEAD_OTLP_ENDPOINT"
_SDK = "opentelemetry"
_REASON_LENGTH = 300
_CLOSE_S = 2.0
"""Time of a process that ends for what is left; a collector that does not answer takes no longer."""


def traces_url(endpoint: str) -> str:
    """Return where a collector takes spans (OpenTelemetry: OTLP/HTTP).

    Args:
        endpoint: the base address of the collector, such as http://collector:4318.

    Raises:
        ValueError: it is no such address; the message follows the name of a setting.
    """
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None or not endpoint.isprintable():
        raise ValueError(
            f"is {endpoint[:100]!r}; expected the base address of a collector that takes OTLP over HTTP, such as "
            "http://collector:4318, without user and query"
        )
    return endpoint.rstrip("/") + "/v1/traces"


class Exporter(Protocol):
    """A span exporter of the SDK."""

    def export(self, spans: Sequence[Any], /) -> Any: ...

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30000) -> bool: ...


class ReportedExporter:
    """Exports by another exporter, whose own lines for each failed batch it replaces by one for an outage."""

    def __init__(self, exporter: Exporter, url: str) -> None:
        """Silence the SDK's log in this process."""
        self._exporter = exporter
        self._url = url
        self._failure: Any = None
        self._closes = False
        self._reason = _Reason()
        log = logging.getLogger(_SDK)
        log.propagate = False
        log.addHandler(self._reason)

    def export(self, spans: Sequence[Any]) -> Any:
        """Export a batch; one that fails is dropped."""
        if self._closes and self._failure is not None:
            return self._failure  # a process that ends does not wait for a collector that is away
        self._reason.text = ""
        result = self._exporter.export(spans)
        if result.name == "SUCCESS":
            if self._failure is not None:
                logger.info("the collector at %s takes spans again", self._url)
            self._failure = None
        else:
            if self._failure is None:
                logger.warning(
                    "the collector at %s takes no spans, which are dropped until it does: %s",
                    self._url,
                    self._reason.text,
                )
            self._failure = result
        return result

    def close_soon(self) -> None:
        """Limit the time that a process which ends has for the collector; called before the processor is shut down."""
        self._closes = True
        timer = threading.Timer(_CLOSE_S if self._failure is None else 0, self._exporter.shutdown)
        timer.daemon = True
        timer.start()

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _Reason(logging.Handler):
    """The first thing that the SDK logged since `text` was emptied."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = self.text or record.getMessage().partition(" encountered while")[0][:_REASON_LENGTH]
