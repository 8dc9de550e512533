"""Clients that try keys: the gateway refuses each, serves others meanwhile, and keeps nothing of them."""

import asyncio
import base64
import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from access.domain.tokens import Claims, new_signing_key, signed
from benchmarks.flood import attacks
from benchmarks.flood.served import write_models
from benchmarks.serving import envoys
from benchmarks.serving.processes import Process
from integrations.clusters.base import Access, CallerKeys
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from tests.servers.parts import program
from tests.serving_runtime._support.processes import ServerProcess, server

MIB = 2**20
GUESSES, CONNECTIONS = 4000, 16
PRIVATE, PUBLIC = new_signing_key("k1")
OTHER_PRIVATE, _ = new_signing_key("k1")
NOW = datetime.now(UTC)
GOOD = Claims("ci", "id-good", "fraud", "", ("default/*",), NOW, NOW + timedelta(days=1))


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running Envoy whose service `small` asks for a key of team fraud."""

    process: Process
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/serving/default/small/v2/health/ready"

    def status(self, token: str = "") -> int:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.get(self.url, headers=headers, timeout=10).status_code

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("runtime")
    write_models(folder / "models")
    flags = ["--model-control-mode=explicit", f"--load-model={attacks.MODEL}"]
    with server(folder / "models", *flags, scratch=folder) as process:
        yield process


@pytest.fixture
def gateway(runtime: ServerProcess, tmp_path: Path) -> Iterator[Gateway]:
    revision = RevisionEndpoints("default", "small-00001", (Endpoint(runtime.http, runtime.grpc),))
    backend = Backend("small-00001", model_version="1", share_percent=100)
    service = ServiceRoute("default", "small", (backend,), access=Access(teams=("fraud",)))
    keys = CallerKeys(public=(PUBLIC,), revoked=("id-revoked",))
    process, port = envoys.start(Routing((service,), (revision,), keys), tmp_path / "envoy")
    try:
        made = Gateway(process, port)
        process.wait_until(lambda: made.status(token()) == 200)
        yield made
    finally:
        process.stop()


def token(claims: Claims = GOOD, private: str = PRIVATE) -> str:
    return signed(claims, private=private, kid="k1")


def guesses(count: int) -> Iterator[str]:
    """Yield as many different tokens, each wrong in another way than the one before it."""
    head, body, signature = token().split(".")
    for number in range(count):
        yield (
            f"{head}.{body}.{_encoded(secrets.token_bytes(64))}",
            f"{head}.{_encoded(json.dumps({**GOOD.json(), 'jti': str(number)}).encode())}.{signature}",
            f"{_encoded(json.dumps({'alg': 'HS256', 'kid': f'k{number}'}).encode())}.{body}.{signature}",
            secrets.token_urlsafe(200),
        )[number % 4]


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


async def _statuses(port: int, tokens: list[str]) -> list[int]:
    """Return the status of one request for each of the tokens, all by one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    for each in tokens:
        writer.write(
            b"GET /serving/default/small/v2/health/ready HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer "
            + each.encode()
            + b"\r\n\r\n"
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found.append(int(head.split(" ", 2)[1]))
        length = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
    writer.close()
    return found


async def _tried_beside(port: int, tried: list[str]) -> tuple[list[int], list[int]]:
    """Return the statuses of guesses, and those of a client with a key that calls until the guesses are over."""
    guessing = [asyncio.create_task(_statuses(port, tried[each::CONNECTIONS])) for each in range(CONNECTIONS)]
    served: list[int] = []
    while not all(each.done() for each in guessing):
        served += await _statuses(port, [token()] * 10)
    return [status for each in guessing for status in each.result()], served


def test_thousands_of_wrong_keys_open_nothing_and_take_nothing_from_others(gateway: Gateway) -> None:
    asyncio.run(_tried_beside(gateway.port, list(guesses(GUESSES // 4))))  # what Envoy keeps for connections is there
    before = gateway.resident_bytes()
    guessed, served = asyncio.run(_tried_beside(gateway.port, list(guesses(GUESSES))))
    assert set(guessed) == {401}
    assert len(guessed) == GUESSES
    assert len(served) >= 10
    assert set(served) == {200}
    assert gateway.resident_bytes() - before < 16 * MIB


@pytest.mark.parametrize(
    ("credential", "status"),
    [
        (token(), 200),
        ("", 401),
        (token(private=OTHER_PRIVATE), 401),
        (token(replace(GOOD, expires_at=NOW - timedelta(hours=1))), 401),
        (token(replace(GOOD, token_id="id-revoked")), 401),
        (token(replace(GOOD, team="risk")), 403),
        (token(replace(GOOD, services=("prod/*",))), 403),
    ],
    ids=["valid", "none", "signed by another", "expired", "revoked", "of another team", "for other services"],
)
def test_http_2_without_grpc_is_checked_alike(gateway: Gateway, credential: str, status: int) -> None:
    headers = [f"-Hauthorization: Bearer {credential}"] if credential else []
    command = [
        str(program("nghttp", "nghttp2-client", [Path("/usr/bin")])),
        "--verbose",
        "--null-out",
        *headers,
        gateway.url,
    ]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    assert re.findall(r":status: (\d+)", re.sub(r"\x1b\[[\d;]*m", "", shown)) == [str(status)]


def test_two_credentials_in_one_request_are_not_a_way_in(gateway: Gateway) -> None:
    good, wrong = token(), token(private=OTHER_PRIVATE)
    for pair in ([f"Bearer {wrong}", f"Bearer {good}"], [f"Bearer {good}", f"Bearer {wrong}"]):
        found = httpx.get(gateway.url, headers=[("authorization", each) for each in pair], timeout=10)
        assert found.status_code == 401
    assert httpx.get(f"{gateway.url}?access_token={good}", timeout=10).status_code == 401
    assert httpx.get(gateway.url, headers={"cookie": f"authorization=Bearer {good}"}, timeout=10).status_code == 401
