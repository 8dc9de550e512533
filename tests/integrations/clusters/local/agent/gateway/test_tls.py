"""TLS at a real Envoy: protocols, certificates that change under open connections, certificates of clients."""

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import grpc
import httpx
import pytest

from integrations.clusters.local.agent.polling import until
from integrations.clusters.local.tls import GatewayTls
from tests.integrations._support.certificates import Authority
from tests.integrations._support.gateways import Gateway, running, service

PATH = "/serving/default/digits/v2/models/digits"
REQUEST = f"GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
OK = b"HTTP/1.1 200 OK"
SERVICES = (service(),)


def trusting(
    authority: Authority, *, alpn: tuple[str, ...] = (), files: tuple[Path, Path] | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(alpn)
    if files is not None:
        context.load_cert_chain(*files)
    return context


class Connection:
    """One connection over TLS that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.tls: ssl.SSLObject = writer.get_extra_info("ssl_object")

    @classmethod
    @asynccontextmanager
    async def opened(cls, gateway: Gateway, context: ssl.SSLContext) -> AsyncIterator["Connection"]:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, ssl=context)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    @property
    def certificate(self) -> str:
        return hashlib.sha256(self.tls.getpeercert(binary_form=True) or b"").hexdigest()

    async def ask(self) -> bytes:
        """Return the first line of the answer."""
        self._writer.write(REQUEST)
        await self._writer.drain()
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 20)
        await self._reader.readexactly(2)
        return head.partition(b"\r\n")[0]


async def presented(gateway: Gateway, context: ssl.SSLContext) -> str:
    """Return the fingerprint of the certificate that a new connection gets."""
    async with Connection.opened(gateway, context) as connection:
        return connection.certificate


async def lets_in(gateway: Gateway, context: ssl.SSLContext) -> bool:
    """Return whether a client is answered; TLS 1.3 refuses it after its own handshake."""
    try:
        async with Connection.opened(gateway, context) as connection:
            return await connection.ask() == OK
    except (OSError, asyncio.IncompleteReadError):
        return False


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
async def test_http_1_http_2_and_grpc_on_one_port_and_nothing_older_or_plainer(tmp_path: Path) -> None:
    authority = Authority("ca")
    tls = GatewayTls(*authority.issue(tmp_path, "server"))
    async with running(tmp_path, SERVICES, tls=tls) as gateway:
        for offered, chosen in ((("http/1.1",), "http/1.1"), (("h2", "http/1.1"), "h2"), ((), None)):
            async with Connection.opened(gateway, trusting(authority, alpn=offered)) as connection:
                assert connection.tls.selected_alpn_protocol() == chosen
                if chosen != "h2":
                    assert await connection.ask() == OK

        credentials = grpc.ssl_channel_credentials(authority.pem)
        async with grpc.aio.secure_channel(f"127.0.0.1:{gateway.port}", credentials) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            assert await call(b"", metadata=[("fairlead-service", "default/digits")], timeout=20) == b""

        old = trusting(authority)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            await presented(gateway, old)
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.TransportError):
                await client.get(f"http://127.0.0.1:{gateway.port}{PATH}", timeout=20)
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(gateway.own))) as client:
            assert (await client.get(f"http://gateway{PATH}", timeout=20)).status_code == 200
        assert gateway.own.stat().st_mode & 0o777 == 0o600


async def test_open_connections_go_on_while_certificates_change_and_a_broken_pair_changes_nothing(
    tmp_path: Path,
) -> None:
    authority = Authority("ca")
    context = trusting(authority)
    tls = GatewayTls(*authority.issue(tmp_path, "server"))
    async with running(tmp_path, SERVICES, tls=tls) as gateway, AsyncExitStack() as kept:
        assert gateway.certificates is not None
        certificates = gateway.certificates
        stays = await kept.enter_async_context(Connection.opened(gateway, context))
        assert await stays.ask() == OK

        async def changes() -> bool:
            await certificates.look()
            return await presented(gateway, context) != seen[-1]

        seen = [stays.certificate]
        (tmp_path / "new").mkdir()
        for made, target in zip(authority.issue(tmp_path / "new", "server"), (tls.certificate, tls.key), strict=True):
            made.replace(target)
        await until(changes, every_s=0.02, within_s=20)
        seen.append(await presented(gateway, context))
        assert (await stays.ask(), stays.certificate) == (OK, seen[0])
        assert certificates.message == ""

        certificate, key = authority.issue(tmp_path / "new", "server")
        whole = certificate.read_bytes()
        broken = {"a half": whole[: len(whole) // 2], "of another key": whole, "empty": b"", "no PEM": b"hello"}
        for what, content in broken.items():
            tls.certificate.write_bytes(content)
            await certificates.look()
            assert "goes on with the certificate of before" in certificates.message, what
            assert await presented(gateway, context) == seen[1], what
            assert await stays.ask() == OK
        tls.certificate.unlink()
        await certificates.look()
        assert "cannot be read" in certificates.message

        shutil.copy(certificate, tls.certificate)
        shutil.copy(key, tls.key)
        await until(changes, every_s=0.02, within_s=20)
        assert certificates.message == ""
        assert await stays.ask() == OK


async def test_where_clients_need_a_certificate_only_a_valid_one_of_their_authority_gets_in(tmp_path: Path) -> None:
    servers, clients, others = Authority("ca"), Authority("clients"), Authority("others")
    (tmp_path / "clients.pem").write_bytes(clients.pem)
    tls = GatewayTls(*servers.issue(tmp_path, "server"), None, tmp_path / "clients.pem")
    late = timedelta(minutes=-1)
    cases = {
        "none": None,
        "of another authority": others.issue(tmp_path, "other"),
        "of the servers' authority": servers.issue(tmp_path, "servers"),
        "that signs itself": Authority("alone").files(tmp_path, "alone"),
        "expired": clients.issue(tmp_path, "expired", ends=late),
        "not yet valid": clients.issue(tmp_path, "early", begins=timedelta(minutes=5)),
        "right": clients.issue(tmp_path, "right"),
    }
    async with running(tmp_path, SERVICES, tls=tls) as gateway:
        got_in = []
        for name, files in cases.items():
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = trusting(servers, files=files)
                context.minimum_version = context.maximum_version = version
                if await lets_in(gateway, context):
                    got_in.append((name, version.name))
        assert got_in == [("right", "TLSv1_2"), ("right", "TLSv1_3")]
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(gateway.own))) as console:
            assert (await console.get(f"http://gateway{PATH}", timeout=20)).status_code == 200, "Fairlead's own calls"

        (tmp_path / "clients.pem").write_bytes(others.pem)
        assert gateway.certificates is not None
        await gateway.certificates.look()

        other = trusting(servers, files=cases["of another authority"])
        await until(lambda: lets_in(gateway, other), every_s=0.02, within_s=20)
        assert not await lets_in(gateway, trusting(servers, files=cases["right"]))
