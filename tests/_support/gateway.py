"""A real Envoy configured as the agent configures it, with one replica that records what it is asked.

The replica says as many rows as a request's header `x-rows`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
from joserfc import jwt
from joserfc.jwk import ECKey

from access.domain.tokens import Claims, new_signing_key, signed
from benchmarks.serving.processes import Process, free_ports
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.agent.gateway.envoy_process import envoy_command
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.files import write_json

PRIVATE, PUBLIC = new_signing_key("k1")
NOW = datetime.now(UTC)
GRPC = "/inference.GRPCInferenceService/"
GOOD = Claims("ci", "id-good", "fraud", "", ("default/*",), NOW, NOW + timedelta(days=1))


def token(claims: Claims = GOOD, *, private: str = PRIVATE, **said: Any) -> str:
    """Return a token with these claims, some of them replaced as no installation would sign them."""
    made = signed(claims, private=private, kid="k1")
    if not said:
        return made
    content = {name: value for name, value in {**claims.json(), **said}.items() if value is not None}
    return jwt.encode({"alg": "ES256", "kid": "k1"}, content, ECKey.import_key(json.loads(private)), ["ES256"])


@dataclass
class Gateway:
    """A running Envoy, and what its one replica was asked."""

    port: int
    router: Router
    routing: Routing
    asked: list[dict[str, str]] = field(default_factory=list)

    async def push(self, **changed: Any) -> None:
        self.routing = replace(self.routing, **changed)
        await self.router.push(self.routing)

    async def http(self, client: httpx.AsyncClient, path: str, headers: dict[str, str]) -> httpx.Response:
        post = "infer" in path or ":predict" in path
        return await client.request("POST" if post else "GET", f"http://127.0.0.1:{self.port}{path}", headers=headers)

    async def grpc(self, method: str, headers: dict[str, str], message: bytes = b"") -> tuple[int, str]:
        metadata = [(name.lower(), value) for name, value in headers.items()]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            try:
                await channel.unary_unary(GRPC + method)(message, metadata=metadata, timeout=20)
            except grpc.aio.AioRpcError as error:
                return error.code().value[0], error.details() or ""
        return 0, ""


@asynccontextmanager
async def running_gateway(folder: Path, *, log: Path | None = None) -> AsyncIterator[Gateway]:
    """Run Envoy with its files in `folder` and an access log at `log`, routing to the public service default/digits."""
    asked: list[dict[str, str]] = []
    http = await asyncio.start_server(_replica(asked), "127.0.0.1", 0)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Calls(asked),))
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    discovery = Discovery(folder / "xds.sock")
    await discovery.start()
    (port,) = free_ports(1)
    started = bootstrap(
        agent_socket=str(folder / "xds.sock"),
        host="127.0.0.1",
        port=port,
        admin_socket=str(folder / "admin.sock"),
        started_at="1",
        access_log="" if log is None else str(log),
    )
    write_json(folder / "bootstrap.json", started)
    process = Process(envoy_command(folder), folder / "envoy.log")
    try:
        endpoint = Endpoint(http.sockets[0].getsockname()[1], grpc_port)
        digits = ServiceRoute("default", "digits", (Backend("r-00001", "7", 100),), preview="r-00001")
        routing = Routing((digits,), (RevisionEndpoints("default", "r-00001", (endpoint,)),))
        made = Gateway(port, Router(discovery, patience_s=60), routing, asked)
        await made.push(keys=CallerKeys(public=(PUBLIC,), revoked=("id-revoked",)))
        yield made
    finally:
        await asyncio.to_thread(process.stop)
        await discovery.close()
        await server.stop(None)
        http.close()


def _replica(asked: list[dict[str, str]]) -> Any:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")[1:]
                headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
                asked.append(headers)
                await reader.readexactly(int(headers.get("content-length", 0)))
                rows = f"fairlead-rows: {headers['x-rows']}\r\n" if "x-rows" in headers else ""
                writer.write(f"HTTP/1.1 200 OK\r\n{rows}content-length: 2\r\n\r\n{{}}".encode())
        except asyncio.IncompleteReadError:
            writer.close()

    return answer


class _Calls(grpc.GenericRpcHandler):
    def __init__(self, asked: list[dict[str, str]]) -> None:
        self._asked = asked

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(_: bytes, context: Any) -> bytes:
            said = dict(details.invocation_metadata)
            self._asked.append(said)
            if "x-rows" in said:
                context.set_trailing_metadata((("fairlead-rows", said["x-rows"]),))
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)
