"""A waker with its real server, a client as Envoy is one, and a cluster of one service that is asleep."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc

from access.domain.tokens import Claims, new_signing_key, signed
from integrations.clusters.base import Access, CallerKeys, Desired
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import DEPLOYMENT, ENDPOINT_SLICE, SECURITY_POLICY
from integrations.clusters.kubernetes.manifests.names import REVISION, SLEPT, service_labels
from integrations.clusters.kubernetes.manifests.routes.security_policy import security_policy
from integrations.clusters.kubernetes.waker import replicas
from integrations.clusters.kubernetes.waker.calls import METHOD
from integrations.clusters.kubernetes.waker.server import WakeServer
from integrations.clusters.kubernetes.waker.waker import Limits, Waker
from integrations.clusters.kubernetes.watches.cache import Cache
from integrations.clusters.local.envoy.api import message
from tests.integrations._support.api_servers import Handler, api_server

Json = dict[str, Any]
NOW = datetime.now(UTC)
GOOD = Claims("ci", "1" * 32, "fraud", "", ("default/*",), NOW, NOW + timedelta(days=1))
PRIVATE, PUBLIC = new_signing_key("k1")
KEYS = CallerKeys(public=(PUBLIC,), revoked=("2" * 32,))
DIGITS = {"namespace": "default", "service": "digits", "revision": "digits-00001"}
INFER = "/serving/default/digits/v2/models/digits/infer"
QUICK = Limits(of_service=3, of_all=4, held_s=20.0, settle_s=0.0)
CheckRequest = message("envoy.service.auth.v3.CheckRequest")
CheckResponse = message("envoy.service.auth.v3.CheckResponse")


def token(*, private: str = PRIVATE, **changed: Any) -> str:
    return signed(replace(GOOD, **changed), private=private, kid="k1")


def policy(access: Access | None = None, keys: CallerKeys = KEYS) -> Json:
    """Return the SecurityPolicy of the service as the driver renders it."""
    (made,) = security_policy(Desired("default", "digits", 1, (), access=access or Access()), keys)
    return made


def call(path: str = INFER, bearer: str = "", method: str = "POST", **extensions: str) -> bytes:
    """Return Envoy's message about a request."""
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    http = {"method": method, "path": path, "headers": headers}
    attributes = {"request": {"http": http}, "context_extensions": extensions or DIGITS}
    return bytes(CheckRequest(attributes=attributes).SerializeToString())


async def until(look: Callable[[], object]) -> None:
    """Wait for a condition on the loop of the waker."""
    async with asyncio.timeout(20):
        while not look():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0.01)


class Asleep:
    """A cluster with one service, whose Deployment has no replicas, as its API server and its watches know it.

    Attributes:
        scaled: what the API server was sent for the scale subresource, with the manager.
        refusals: statuses with which it refuses the next of them.
        reads, lists: how often the Deployment was read, and its pods listed.
        pods: of the revision, which the API server lists; None where the role may not read them.
        conditions: of the Deployment.
    """

    def __init__(self, keys: CallerKeys = KEYS, access: Access | None = None, slept_at: str = "1.5") -> None:
        self.cache, self._version, self._replicas = Cache(), 1, 0
        self.scaled: list[tuple[int, str]] = []
        self.refusals: list[int] = []
        self.reads = self.lists = 0
        self.pods: list[Json] | None = []
        self.conditions: list[Json] = []
        self._slept_at = slept_at
        self.cache.keep(["default"])
        for kind in replicas.WATCHED:
            self.cache.list_begins(kind)
            self.cache.listed(kind, "", {}, "1")
        self._hear(SECURITY_POLICY, policy(access, keys))
        self.scale(0)

    def _hear(self, kind: Any, item: Json) -> set[tuple[str, str]]:
        self._version += 1
        item["metadata"] |= {"resourceVersion": str(self._version), "namespace": "default"}
        return self.cache.heard(kind, "", "MODIFIED", item)

    def scale(self, number: int) -> set[tuple[str, str]]:
        """Set the Deployment's number; the watches know it."""
        self._replicas = number
        return self._hear(DEPLOYMENT, self.deployment())

    def ready(self, *pods: str) -> set[tuple[str, str]]:
        """Set the pods that take requests; the watches know it."""
        labels = {**service_labels("digits"), REVISION: "digits-00001"}
        endpoints = [{"conditions": {"ready": True}, "targetRef": {"name": pod}} for pod in pods]
        return self._hear(ENDPOINT_SLICE, {"metadata": {"name": "a", "labels": labels}, "endpoints": endpoints})

    def deployment(self) -> Json:
        """Return the Deployment as it is."""
        annotations = {SLEPT: self._slept_at} if self._slept_at else {}
        metadata = {"name": "digits-00001", "labels": service_labels("digits"), "annotations": annotations}
        metadata |= {"namespace": "default", "resourceVersion": str(self._version)}
        status = {"conditions": self.conditions} if self.conditions else {}
        return {"metadata": metadata, "spec": {"replicas": self._replicas}, "status": status}

    def answer(self, handler: Handler) -> None:
        """Answer as the API server."""
        if "/pods?" in handler.path:
            self.lists += 1
            refused = {"kind": "Status", "message": "no"}
            handler.say(*((403, refused) if self.pods is None else (200, {"items": self.pods})))
        elif handler.command == "GET":
            self.reads += 1
            handler.say(200, self.deployment())
        elif self.refusals:
            handler.say(self.refusals.pop(), {"kind": "Status", "message": "no"})
        else:
            self._replicas = int(handler.body.split(b'"replicas":')[1].split(b"}")[0])
            manager = handler.path.split("fieldManager=")[1].split("&")[0]
            self.scaled.append((self._replicas, manager))
            handler.say(200, {})


class Running:
    """A waker of such a cluster, and Envoy's side of it."""

    def __init__(self, waker: Waker, server: WakeServer, channel: grpc.aio.Channel) -> None:
        self.waker, self.server = waker, server
        self._check = channel.unary_unary(METHOD)

    def send(self, content: bytes) -> Any:
        """Send a message, and return the call, to be awaited or cancelled."""
        return self._check(content, timeout=60)

    async def status(self, content: bytes) -> tuple[int, str]:
        """Return 0 where the request goes on, else the status and body of its answer."""
        found = CheckResponse.FromString(await self.send(content))
        return found.denied_response.status.code, found.denied_response.body


@asynccontextmanager
async def running(folder: Path, cluster: Asleep, limits: Limits = QUICK) -> AsyncIterator[Running]:
    with api_server(folder, cluster.answer) as kubeconfig:
        api = Api(kubeconfig)
        waker = Waker(replicas.Replicas(api, cluster.cache), limits)
        server = WakeServer(("127.0.0.1", 0), waker)
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
                yield Running(waker, server, channel)
        finally:
            await server.stop(0)
            api.close()
