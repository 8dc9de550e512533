"""Metrics endpoint (Prometheus, OpenMetrics), on a port of its own, in the format that the scraper accepts."""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable
from itertools import chain

from serving_runtime.common.request import Cancellable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.wire.message import Reply, Request, Response, text_error
from serving_runtime.telemetry.metrics import protobuf, text
from serving_runtime.telemetry.metrics.cpu import CpuUse
from serving_runtime.telemetry.metrics.custom_metrics import OWN
from serving_runtime.telemetry.metrics.families import Family, process_families
from serving_runtime.telemetry.metrics.page import Answer, Page
from serving_runtime.telemetry.metrics.settings import MetricsSettings

logger = logging.getLogger(__name__)

_ACCEPT = b"accept"


def keeps_header(name: bytes) -> bool:
    """Return whether a header is needed to answer."""
    return name.lower() == _ACCEPT


class MetricsApplication:
    """Answers GET /metrics.

    Args:
        cpu: returns the utilization of the machine; None where it is not shown.
        more: returns families of parts that are neither models nor the machine.
    """

    def __init__(
        self,
        engine: Engine,
        settings: MetricsSettings,
        cpu: Callable[[], CpuUse] | None,
        more: Callable[[], Iterable[Family]] = tuple,
    ) -> None:
        self._engine = engine
        self._cpu = cpu
        self._more = more
        self._pages = {form.CONTENT_TYPE: Page(form, settings) for form in (text, protobuf)}

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        if request.target.split(b"?", 1)[0] != b"/metrics":
            reply(text_error(404, "there is nothing here but /metrics"))
        elif request.method != b"GET":
            reply(text_error(405, "this path takes GET only", b"Allow: GET\r\n"))
        else:
            accept = b",".join(value for name, value in request.headers if name.lower() == _ACCEPT)
            form = protobuf if protobuf.wanted(accept.decode("latin-1")) else text
            return InTurns(self._pages[form.CONTENT_TYPE].pieces(self._engine.series(), self._others), reply).begun()
        return None

    def _others(self) -> Iterable[Family]:
        cpu = self._cpu() if self._cpu is not None else None
        return chain(process_families(cpu), OWN.families(), self._more())


class InTurns:
    """Renders a page over several turns of the event loop: clients of models are answered in between."""

    def __init__(self, pieces: Generator[None, None, Answer], reply: Reply) -> None:
        self._pieces = pieces
        self._reply = reply
        self._loop = asyncio.get_running_loop()

    def begun(self) -> "InTurns":
        self._loop.call_soon(self._go_on)
        return self

    def cancel(self) -> None:
        self._pieces.close()

    def _go_on(self) -> None:
        try:
            next(self._pieces)
        except StopIteration as end:
            if end.value is not None:  # else it was cancelled
                content_type, chunks = end.value
                headers = f"Content-Type: {content_type}\r\n".encode()
                self._reply(Response(200, headers, chunks, sum(map(len, chunks))))
        except Exception:  # a bug: the scraper gets an error, the log the details
            logger.exception("rendering the metrics page failed")
            self._reply(text_error(500, "internal error"))
        else:
            self._loop.call_soon(self._go_on)
