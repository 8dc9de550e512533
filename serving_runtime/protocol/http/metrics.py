"""The metrics page, on a port of its own, in the format that the scraper asks for."""

from collections.abc import Callable, Iterable
from itertools import chain

from serving_runtime.engine.engine import Engine
from serving_runtime.protocol.http.message import Reply, Request, Response, text_error
from serving_runtime.request import Cancellable
from serving_runtime.telemetry import protobuf, text
from serving_runtime.telemetry.cpu import CpuUse
from serving_runtime.telemetry.families import Family, families
from serving_runtime.telemetry.own import OWN
from serving_runtime.telemetry.settings import MetricsSettings

_ACCEPT = b"accept"


def keeps_header(name: bytes) -> bool:
    """Return whether a header is needed to answer."""
    return name.lower() == _ACCEPT


class MetricsApplication:
    """Answers GET /metrics.

    Args:
        cpu: returns how the machine is used; None where that is not shown.
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
        self._settings = settings
        self._cpu = cpu
        self._more = more

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        if request.target.split(b"?", 1)[0] != b"/metrics":
            reply(text_error(404, "there is nothing here but /metrics"))
        elif request.method != b"GET":
            reply(text_error(405, "this path takes GET only", b"Allow: GET\r\n"))
        else:
            accept = b",".join(value for name, value in request.headers if name.lower() == _ACCEPT)
            form = protobuf if protobuf.wanted(accept.decode("latin-1")) else text
            cpu = self._cpu() if self._cpu is not None else None
            shown = chain(families(self._engine.series(), self._settings, cpu), OWN.families(), self._more())
            page = form.render(shown)
            reply(Response(200, f"Content-Type: {form.CONTENT_TYPE}\r\n".encode(), (page,), len(page)))
        return None
