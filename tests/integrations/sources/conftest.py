"""A store for what is fetched, and a web server whose answers a test writes itself."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.uris import parse, parse_prefixes
from integrations import sources
from integrations.artifacts import ArtifactStore, StoredArtifact
from integrations.sources.content import CHUNK_BYTES

Answer = Callable[[BaseHTTPRequestHandler], None]


class WebServer(ThreadingHTTPServer):
    """Answers each path as `answers` says, and notes what was asked for."""

    daemon_threads = True
    answers: dict[str, Answer]
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def gives(self, path: str, content: bytes, *, length: int | None = None) -> str:
        """Answer `path` with bytes; `length` is what the header says. Returns the URI."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content) if length is None else length))
            handler.end_headers()
            handler.wfile.write(content)

        self.answers[path] = answer
        return f"{self.url}{path}"

    def says(self, path: str, status: int, **headers: str) -> str:
        """Answer `path` with a status and no body. Returns the URI."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()

        self.answers[path] = answer
        return f"{self.url}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: WebServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.answers[self.path](self)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """Give a web server on a free port of the loopback address; no proxy is between."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = WebServer(("127.0.0.1", 0), _Handler)
    server.answers, server.asked = {}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", max_bytes=8 * CHUNK_BYTES, max_files=5)


@pytest.fixture
def fetch(store: ArtifactStore) -> Callable[..., StoredArtifact]:
    """Return a way to fetch a URI; by default all of its scheme and host is allowed."""

    def act(
        uri: str,
        *,
        allowed: list[str],
        filename: str = "",
        sha256: str = "",
        timeout_s: float = 60.0,
        progress: sources.Progress = lambda done, total: None,
    ) -> StoredArtifact:
        order = sources.Order(parse(uri), filename, sha256, "import-1", timeout_s)
        return sources.fetch(order, store, parse_prefixes(allowed), progress)

    return act


@pytest.fixture
def left_behind(store: ArtifactStore) -> Callable[[], list[str]]:
    """Return what there is in the store, whole or half-done."""

    def names() -> list[str]:
        return sorted(
            path.relative_to(store.folder).as_posix() for path in store.folder.rglob("*") if path.name != ".incoming"
        )

    return names


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
