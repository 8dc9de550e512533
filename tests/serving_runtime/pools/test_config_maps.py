"""A pool's catalog in ConfigMaps, behind a server that answers as an API server does."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from serving_runtime.common.errors import Unavailable
from serving_runtime.pools.config_maps import ConfigMapCatalog

MODEL = "default.digits"
SHARD = hashlib.sha256(MODEL.encode()).hexdigest()[:2]


class Server:
    """Answers with the ConfigMaps it has; `asked` are the paths and the tokens of the requests."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[str, str]] = {}
        self.asked: list[tuple[str, str]] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["authorization"]))
                data = outer.maps.get(self.path.rpartition("/")[2])
                status = outer.status if data is not None or outer.status != 200 else 404
                body = json.dumps({"kind": "ConfigMap", "data": data}).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def put(self, *versions: int) -> None:
        entries = {str(each): {"digest": f"sha256:{each:064x}", "origin": "/x"} for each in versions}
        text = json.dumps({"schema": 1, "default": max(versions), "versions": entries})
        self.maps.setdefault(f"fairlead-warm.catalog-{SHARD}", {})[MODEL] = text


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    found.thread.start()
    yield found
    found.server.shutdown()
    found.thread.join()
    found.server.server_close()


@pytest.fixture
def catalog(server: Server, tmp_path: Path) -> ConfigMapCatalog:
    (tmp_path / "token").write_text("secret\n")
    at = f"http://127.0.0.1:{server.server.server_address[1]}"
    return ConfigMapCatalog("default", "fairlead-warm.catalog", at, tmp_path)


def test_models_of_a_shard_are_read_together_and_kept(server: Server, catalog: ConfigMapCatalog) -> None:
    async def run() -> None:
        server.put(1)
        found = await asyncio.gather(*(catalog.find(MODEL) for _ in range(50)))
        assert {each.default for each in found if each} == {1}
        assert await catalog.find(MODEL) is not None
        await catalog.close()

    asyncio.run(run())
    path = f"/api/v1/namespaces/default/configmaps/fairlead-warm.catalog-{SHARD}"
    assert server.asked == [(path, "Bearer secret")]


def test_what_a_shard_lacks_is_looked_for_in_a_newer_one(server: Server, catalog: ConfigMapCatalog) -> None:
    async def run() -> None:
        assert await catalog.find(MODEL) is None
        server.put(1)
        assert (await catalog.find(MODEL)) is not None
        server.put(1, 2)
        old, new = await catalog.find(MODEL), await catalog.find(MODEL, newest=True)
        assert old is not None
        assert new is not None
        assert (old.default, new.default) == (1, 2)
        assert await catalog.find("../secrets") is None
        await catalog.close()

    asyncio.run(run())
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [403, 500])
def test_a_refusal_names_the_config_map_and_is_tried_again(
    server: Server, catalog: ConfigMapCatalog, status: int
) -> None:
    async def run() -> None:
        server.status = status
        with pytest.raises(Unavailable, match=rf"catalog-{SHARD} cannot be read: the API server answered {status}"):
            await catalog.find(MODEL)
        server.status = 200
        server.put(1)
        assert await catalog.find(MODEL) is not None
        await catalog.close()

    asyncio.run(run())
