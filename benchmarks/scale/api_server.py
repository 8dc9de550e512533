"""Stand-in for the API servers of clusters: each answers after a latency, and counts what it is asked.

    python -m benchmarks.scale.api_server --port 6443 --latency-ms 30 --certificate FILE --key FILE

One process is the API server of many clusters, each under a path of its own: `https://127.0.0.1:6443/c/7`. `/counts`
returns the requests of all clusters by method and kind; `/latency/100` sets another latency.
`/copies/NAME/PREFIX/9000/50` copies the objects of a service of the first cluster for 9,000 others, on 50 clusters in
turn; these get no requests.
"""

import argparse
import asyncio
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import uvicorn

from benchmarks.scale.api_objects import ChangedError, Json, Objects, Place

_PATH = re.compile(
    r"/c/(?P<cluster>\d+)/apis?(/(?P<group>[^/]+\.[^/]+|apps|batch|policy|autoscaling))?/(?P<version>v[^/]+)"
    r"(/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[a-z]+)(/(?P<name>[^/]+))?(?P<rest>/.*)?"
)
_NOISE_S = 15.0
_TURN_S = 0.25
_BOOKMARK_S = 30.0
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class ApiServer:
    """ASGI application: the API servers of all clusters."""

    def __init__(self, latency_ms: float) -> None:
        self.latency_s = latency_ms / 1000
        self.clusters: dict[str, Objects] = defaultdict(Objects)
        self.counts: Counter[str] = Counter()
        self.began = time.time()
        self.idle = ""
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path = scope["path"]
        if path == "/counts":
            await _answer(send, 200, {**self.counts, "objects": sum(map(_size, self.clusters.values()))})
            return
        if path.startswith("/latency/"):
            self.latency_s = float(path.rpartition("/")[2]) / 1000
            await _answer(send, 200, {})
            return
        if path.startswith("/copies/"):
            name, prefix, count, clusters = path.split("/")[2:]
            self._copy(name, prefix, int(count), int(clusters))
            await _answer(send, 200, {})
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = dict(parse_qsl(scope["query_string"].decode()))
        await asyncio.sleep(self.latency_s)
        await self._dispatch(scope["method"], path, query, json.loads(body) if body else {}, scope, send)

    async def _dispatch(
        self, method: str, path: str, query: dict[str, str], body: Json, scope: dict[str, Any], send: Send
    ) -> None:
        found = _PATH.fullmatch(path)
        if found is None:
            self.counts[f"{method} other"] += 1
            await _answer(send, 200, {"major": "1", "minor": "33", "gitVersion": "v1.33.0"})
            return
        objects, plural, rest = self.clusters[found["cluster"]], found["plural"], found["rest"] or ""
        place = Place(plural, found["namespace"] or "", found["name"] or "")
        if rest.endswith("/metrics"):
            self.counts["GET metrics"] += 1
            await send_text(send, self._page(place.name.partition(":")[0]))
            return
        kind = "WATCH" if query.get("watch") else "LIST" if method == "GET" and not place.name else method
        self.counts[f"{kind} {plural}"] += 1
        labels = dict(each.split("=", 1) for each in query.get("labelSelector", "").split(",") if "=" in each)
        if kind == "WATCH":
            await self._watch(objects, place, labels, query, send)
        elif kind == "LIST":
            items = objects.list(place, labels)
            await _answer(send, 200, {"items": items, "metadata": {"resourceVersion": str(objects.version)}})
        else:
            content_type = dict(scope["headers"]).get(b"content-type", b"").decode()
            status, answer = self._one(objects, place, method, rest, content_type, query, body)
            await _answer(send, status, answer)

    def _one(
        self, objects: Objects, place: Place, method: str, rest: str, content_type: str, query: Json, body: Json
    ) -> tuple[int, Json]:
        now = time.monotonic()
        missing = (404, {"message": f'{place.plural} "{place.name}" not found', "reason": "NotFound"})
        try:
            if method == "GET":
                found = objects.get(place)
                return missing if found is None else (200, found)
            if query.get("dryRun"):
                return 200, {**body, "metadata": {"uid": "dry", "resourceVersion": "0", **body["metadata"]}}
            if method == "POST":
                return 201, objects.create(place, body, now)
            if method == "DELETE":
                objects.delete(place, now)
                return 200, {}
            if rest == "/scale":
                return 200, objects.scale(place, body["spec"]["replicas"], now)
            change = objects.apply if "apply-patch" in content_type else objects.merge
            return 200, change(place, body, now)
        except ChangedError:
            return 409, {"message": "the object has been modified", "reason": "Conflict"}
        except KeyError:
            return missing

    async def _watch(
        self, objects: Objects, place: Place, labels: dict[str, str], query: dict[str, str], send: Send
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        since = int(query.get("resourceVersion") or 0)
        now = time.monotonic()
        ends, bookmark_at = now + float(query.get("timeoutSeconds", 240)), now + _BOOKMARK_S
        while (now := time.monotonic()) < ends:
            if now >= bookmark_at:
                bookmark_at = now + _BOOKMARK_S
                mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(since)}}}
                body = json.dumps(mark).encode() + b"\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})
            for kind, each in objects.changes(place.plural, since, place.namespace, labels):
                line = json.dumps({"type": kind, "object": each}).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            since = objects.version
            await asyncio.sleep(_TURN_S)
        await send({"type": "http.response.body", "body": b""})

    def _copy(self, name: str, prefix: str, count: int, clusters: int) -> None:
        objects = self.clusters["0"].of_service(name)
        self.idle = f"{prefix}-"
        for number in range(count):
            there = self.clusters[str(number % clusters)]
            for plural, text in objects:
                there.put_copy(plural, json.loads(text.replace(name, f"{prefix}-{number:05}")))

    def _page(self, pod: str) -> str:
        """Return a runtime's metrics: twenty requests a second since it began, none of an idle one."""
        requests = 0 if self.idle and pod.startswith(self.idle) else round(20 * (time.time() - self.began))
        return metrics_page(pod.rsplit("-", 2)[0], self.began, requests)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._tasks.append(asyncio.create_task(self._control()))
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                for each in self._tasks:
                    each.cancel()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _control(self) -> None:
        """Be the controllers of all clusters."""
        noise_at = time.monotonic() + _NOISE_S
        while True:
            await asyncio.sleep(_TURN_S)
            now = time.monotonic()
            for each in self.clusters.values():
                each.settle(now)
                if now >= noise_at:
                    each.touch_autoscalers(now)
            if now >= noise_at:
                noise_at = now + _NOISE_S


def metrics_page(model: str, began: float, requests: int) -> str:
    """Return the metrics page of a runtime that has answered so many requests since `began`, half of them in 1 ms."""
    histogram = "fairlead_inference_request_duration_us_bucket"
    return (
        f"process_start_time_seconds {began}\n"
        f'nv_inference_request_success{{model="{model}",version="1"}} {requests}\n'
        f'{histogram}{{model="{model}",le="1000"}} {requests // 2}\n'
        f'{histogram}{{model="{model}",le="5000"}} {requests}\n'
        f'{histogram}{{model="{model}",le="+Inf"}} {requests}\n'
    )


def _size(objects: Objects) -> int:
    return sum(map(len, objects.there.values()))


async def _answer(send: Send, status: int, content: Json) -> None:
    await _send(send, status, b"application/json", json.dumps(content).encode())


async def send_text(send: Send, content: str) -> None:
    """Answer with a page of text."""
    await _send(send, 200, b"text/plain", content.encode())


async def _send(send: Send, status: int, content_type: bytes, content: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=4.0)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    options = parser.parse_args()
    uvicorn.run(
        ApiServer(options.latency_ms),
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        timeout_keep_alive=90,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )


if __name__ == "__main__":
    main()
