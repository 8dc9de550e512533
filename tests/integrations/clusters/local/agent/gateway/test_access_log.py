"""The access log of a real Envoy: who called what, nothing forged, no credential, and no line lost by a rotation."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from access.domain.tokens import Claims, new_signing_key, signed
from benchmarks.serving.processes import Process, free_ports
from integrations.clusters.base import Access, CallerKeys
from integrations.clusters.local.access_log_files import AccessLogFiles
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.agent.gateway.envoy_admin import Admin
from integrations.clusters.local.agent.gateway.envoy_process import envoy_command
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.files import write_json

PRIVATE, PUBLIC = new_signing_key("k1")
NOW = datetime.now(UTC)
TOKEN = signed(
    Claims("nightly", "id-1", "fraud", "alice", ("default/*",), NOW, NOW + timedelta(days=1)),
    private=PRIVATE,
    kid="k1",
)
BEARER = {"authorization": f"Bearer {TOKEN}"}
INFER = "/serving/default/digits/v2/models/digits/infer"


@dataclass
class Gateway:
    url: str
    address: str
    files: AccessLogFiles
    admin: Admin

    async def lines(self, number: int) -> list[dict[str, Any]]:
        """Return the lines of all files once there are so many."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(20):
            while len(found) < number:
                await asyncio.sleep(0.05)
                texts = [each.path.read_text() for each in self.files.files()]
                found = [json.loads(line) for text in texts for line in text.splitlines()]
        return found


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    http = await asyncio.start_server(_answer, "127.0.0.1", 0)
    calls = grpc.aio.server()
    calls.add_generic_rpc_handlers((_Calls(),))
    grpc_port = calls.add_insecure_port("127.0.0.1:0")
    await calls.start()
    discovery = Discovery(tmp_path / "xds.sock")
    await discovery.start()
    (port,) = free_ports(1)
    files = AccessLogFiles(tmp_path / "access-log", segment_bytes=1)
    files.begin()
    started = bootstrap(
        agent_socket=str(tmp_path / "xds.sock"),
        host="127.0.0.1",
        port=port,
        admin_socket=str(tmp_path / "admin.sock"),
        started_at="1",
        access_log=str(files.current),
    )
    write_json(tmp_path / "bootstrap.json", started)
    process = Process(envoy_command(tmp_path), tmp_path / "envoy.log")
    admin = Admin(tmp_path / "admin.sock")
    try:
        endpoint = Endpoint(http.sockets[0].getsockname()[1], grpc_port)
        services = (
            ServiceRoute("default", "digits", (Backend("r-00001", "7", 100),), access=Access()),
            ServiceRoute("default", "open", (Backend("r-00001", "7", 100),)),
        )
        routing = Routing(
            services, (RevisionEndpoints("default", "r-00001", (endpoint,)),), CallerKeys(public=(PUBLIC,))
        )
        await Router(discovery, patience_s=60).push(routing)
        yield Gateway(f"http://127.0.0.1:{port}", f"127.0.0.1:{port}", files, admin)
    finally:
        await admin.close()
        await asyncio.to_thread(process.stop)
        await discovery.close()
        await calls.stop(None)
        http.close()


async def test_a_line_says_who_called_which_revision(gateway: Gateway) -> None:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as client:
        await client.post(f"{INFER}?secret=1", content=b"12345", headers=BEARER)
        await client.post(INFER, headers={"fairlead-rows": "9"})
        await client.post("/serving/default/open/v2/models/open/infer")
        await client.get("/nowhere")
    async with grpc.aio.insecure_channel(gateway.address) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        await call(b"", metadata=[("fairlead-service", "default/digits"), *BEARER.items()], timeout=20)
    known, refused, public, unknown, called = await gateway.lines(5)
    assert (known["service"], known["upstream"]) == ("default/digits", "default/r-00001/http")
    assert tuple(known[name] for name in ("key", "token_id", "team")) == ("nightly", "id-1", "fraud")
    assert (known["path"], known["method"], known["status"]) == ("/v2/models/digits/infer", "POST", 200)
    assert (known["bytes_in"], known["bytes_out"]) == (5, 2)
    assert known["model_us"] > 0
    assert [each["attempts"] for each in (known, refused, public, unknown, called)] == [1, 0, 1, 0, 1]
    assert [(each["rows"], each["grpc_rows"]) for each in (known, refused, called)] == [
        ("3", None),
        (None, None),
        (None, "4"),
    ]
    assert (refused["status"], refused["service"], refused["key"]) == (401, "default/digits", None)
    assert (public["status"], public["key"], public["team"]) == (200, None, None)
    assert unknown["service"] is None
    assert (called["service"], called["upstream"]) == ("default/digits", "default/r-00001/grpc")
    assert (called["grpc_status"], called["key"], called["path"][-10:]) == (0, "nightly", "ModelInfer")
    whole = gateway.files.current.read_text()
    assert TOKEN not in whole
    assert TOKEN.rsplit(".")[2] not in whole
    assert "secret" not in whole


async def test_what_clients_send_makes_no_line_and_no_field(gateway: Gateway) -> None:
    forged = 'x"}\n{"key": "nightly", "team": "fraud'
    raw = forged.encode().replace(b"\n", b"%0A").replace(b" ", b"%20")
    reader, writer = await asyncio.open_connection(*gateway.address.split(":"))
    quoted = b'x"}\t{"key": "nightly", "team": "fraud\xff'
    writer.write(
        b"POST /serving/default/open/v2/models/open/infer?" + raw + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n"
        b"x-request-id: " + quoted + b'\r\nx-envoy-original-path: /forged"\r\nfairlead-key: id-of-admin\r\n'
        b"fairlead-caller: nightly\r\nfairlead-team: fraud\r\n"
        b"fairlead-service: default/digits\r\nfairlead-revision: r-00009\r\n\r\n"
    )
    writer.write(b"GET /" + raw + b' HTTP/1.1\r\nhost: "}\\"\r\n\r\n')
    await reader.readuntil(b"\r\n\r\n")
    first, second = await gateway.lines(2)
    writer.close()
    await writer.wait_closed()
    assert len(gateway.files.current.read_bytes().splitlines()) == 2
    for line in (first, second):
        assert (line["key"], line["team"], line["token_id"]) == (None, None, None)
    assert second["service"] is None


async def test_a_rotation_loses_no_line(gateway: Gateway) -> None:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as client:
        sent = 0
        for _ in range(3):
            for _ in range(20):
                await client.get("/nowhere", headers={"x-request-id": f"n-{sent}"})
                sent += 1
            await gateway.lines(sent - 19)
            assert gateway.files.set_aside()
            await gateway.admin.reopen_logs()
            async with asyncio.timeout(20):
                while not gateway.files.current.exists():  # noqa: ASYNC110 - Envoy makes it
                    await asyncio.sleep(0.01)
        found = await gateway.lines(sent)
    assert sorted(line["request_id"] for line in found) == sorted(f"n-{number}" for number in range(sent))
    assert sum(each.is_complete for each in gateway.files.files()) == 3


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(b"HTTP/1.1 200 OK\r\nfairlead-rows: 3\r\ncontent-length: 2\r\n\r\n{}")
    except asyncio.IncompleteReadError:
        writer.close()


class _Calls(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(_: bytes, context: Any) -> bytes:
            context.set_trailing_metadata((("fairlead-rows", "4"),))
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)
