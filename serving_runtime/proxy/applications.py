"""What the two ports answer: requests to the model and its health, and the metrics page."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import orjson

from serving_runtime.common.errors import ServingError
from serving_runtime.protocol.caller_limit import UnansweredRequests
from serving_runtime.proxy.client_connection import JSON, ClientConnection, Work
from serving_runtime.proxy.connection_pool import ConnectionPool
from serving_runtime.proxy.exchange import Exchange, Inference, refuse
from serving_runtime.proxy.health import Health
from serving_runtime.proxy.incoming import Incoming
from serving_runtime.proxy.options import ProxyOptions, Targets
from serving_runtime.proxy.paths import Paths, Purpose
from serving_runtime.proxy.places import Places
from serving_runtime.proxy.request_counts import RequestCounts
from serving_runtime.telemetry.metrics import text


class ProxyApplication:
    """Forwards requests to the container, or to the programs in its stead.

    Attributes:
        draining: whether the proxy is no longer ready.
    """

    def __init__(self, options: ProxyOptions, targets: Targets) -> None:
        self.draining = False
        self._paths = Paths(options.model_name, has_explainer=targets.explainer is not None)
        self._pools = {target.name: ConnectionPool(target, options.limits) for target in targets}
        self._first = self._pools[targets.first.name]
        self._explainer = self._first if targets.explainer is None else self._pools[targets.explainer.name]
        places = Places(options.max_concurrent_requests)
        self.counts = RequestCounts(options.model_name, lambda: places.waiting)
        self._inference = Inference(self.counts, places)
        self._health = [Health(target, self._pools[target.name], options.limits) for target in targets]
        self._unanswered = UnansweredRequests()

    def begin(self, incoming: Incoming, client: ClientConnection) -> Work | None:
        head = incoming.head
        if head is None:
            raise ValueError("a request without a head")
        purpose = self._paths.purpose(head.method, head.target)
        if purpose is Purpose.LIVE:
            return _Question(client, "live", self._live)
        if purpose is Purpose.READY:
            return _Question(client, "ready", self._ready)
        inference = self._inference if purpose is Purpose.INFERENCE else None
        pool = self._explainer if purpose is Purpose.EXPLANATION else self._first
        exchange = Exchange(head, incoming, client, pool, inference)
        try:
            if incoming.caller_limit:
                self._unanswered.enter(incoming.caller, incoming.caller_limit)
                exchange.on_ended = lambda: self._unanswered.leave(incoming.caller)
            exchange.begin()
        except ServingError as error:
            refuse(client, error)
            return None
        return exchange

    async def _live(self) -> str:
        return await _first_reason(each.live() for each in self._health)

    async def _ready(self) -> str:
        if self.draining:
            return "the server is shutting down"
        return await _first_reason(each.ready() for each in self._health)

    def sweep(self, now: float) -> None:
        """End unused connections and requests without progress; called once a second."""
        for pool in self._pools.values():
            pool.sweep(now)

    def close(self) -> None:
        """End all connections to the container."""
        for pool in self._pools.values():
            pool.close()


async def _first_reason(answers: Iterable[Coroutine[Any, Any, str]]) -> str:
    """Return the first reason against; empty without one. They are awaited at the same time."""
    return next((reason for reason in await asyncio.gather(*answers) if reason), "")


class _Question:
    """A request for health; `ask` returns why the answer is no, or nothing."""

    def __init__(self, client: ClientConnection, what: str, ask: Callable[[], Awaitable[str]]) -> None:
        self._client = client
        self._what = what
        self._task = asyncio.get_running_loop().create_task(self._answer(ask))

    async def _answer(self, ask: Callable[[], Awaitable[str]]) -> None:
        reason = await ask()
        content = {self._what: False, "error": reason} if reason else {self._what: True}
        self._client.answer(503 if reason else 200, JSON, orjson.dumps(content))

    def body_arrived(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def cancel(self) -> None:
        self._task.cancel()


class MetricsApplication:
    """Answers GET /metrics."""

    def __init__(self, counts: RequestCounts) -> None:
        self._counts = counts

    def begin(self, incoming: Incoming, client: ClientConnection) -> Work | None:
        head = incoming.head
        if head is None or head.target.partition(b"?")[0] != b"/metrics":
            client.refuse(404, "there is nothing here but /metrics")
        elif head.method != b"GET":
            client.refuse(405, "this path takes GET only", b"Allow: GET\r\n")
        else:
            page = text.render(self._counts.families())
            client.answer(200, f"Content-Type: {text.CONTENT_TYPE}\r\n".encode(), page)
        return None
