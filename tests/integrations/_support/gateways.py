"""A real Envoy that is configured as the agent does it, before a replica that answers `{}`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from benchmarks.serving.processes import Process, free_ports
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.certificates import Certificates
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.agent.gateway.envoy_process import envoy_command
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.tls import over_tls
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.files import write_json
from integrations.clusters.local.tls import GatewayTls

REVISION = "r-00001"


@dataclass
class Gateway:
    """A running gateway; `certificates` has its TLS, `own` its socket for the control plane."""

    port: int
    router: Router
    discovery: Discovery
    certificates: Certificates | None
    own: Path


def service(name: str = "digits", **more: Any) -> ServiceRoute:
    return ServiceRoute("default", name, (Backend(REVISION, "7", 100),), **more)


@asynccontextmanager
async def running(
    folder: Path, services: Sequence[ServiceRoute], *, keys: CallerKeys | None = None, tls: GatewayTls | None = None
) -> AsyncIterator[Gateway]:
    http = await asyncio.start_server(_answer, "127.0.0.1", 0)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Calls(),))
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    discovery = Discovery(folder / "xds.sock")
    certificates = Certificates(tls, discovery, lambda: None) if tls is not None else None
    if certificates is not None:
        await certificates.look()
    await discovery.start()
    (port,) = free_ports(1)
    start = bootstrap(
        agent_socket=str(folder / "xds.sock"),
        host="127.0.0.1",
        port=port,
        admin_socket=str(folder / "admin.sock"),
        started_at="1",
        transport=over_tls(client_certificates=tls.client_authorities is not None) if tls else None,
        own_socket=str(folder / "own.sock") if tls else "",
    )
    write_json(folder / "bootstrap.json", start)
    process = Process(envoy_command(folder), folder / "envoy.log")
    try:
        router = Router(discovery, patience_s=60)
        endpoint = Endpoint(http.sockets[0].getsockname()[1], grpc_port)
        revisions = (RevisionEndpoints("default", REVISION, (endpoint,)),)
        await router.push(Routing(tuple(services), revisions, keys or CallerKeys()))
        yield Gateway(port, router, discovery, certificates, folder / "own.sock")
    finally:
        await asyncio.to_thread(process.stop)
        await discovery.close()
        await server.stop(None)
        http.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode().lower().split("\r\n")
            length = next((int(line.partition(": ")[2]) for line in lines if line.startswith("content-length: ")), 0)
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
    except asyncio.IncompleteReadError:
        writer.close()


class _Calls(grpc.GenericRpcHandler):
    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(_: bytes, __: Any) -> bytes:
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)
