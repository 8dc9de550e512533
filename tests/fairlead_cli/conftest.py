"""A control plane that says what a test tells it to, over real HTTP."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.__main__ import main
from tests.servers.template import copy_sqlite


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Api:
    """Answers by method and path (with its query); a list is worked off, its last entry stays.

    The status 0 is a connection that ends without an answer.
    """

    url: str = ""
    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    filenames: dict[str, str] = field(default_factory=dict)
    retry_after: str = ""

    def on(self, request: str, *documents: Any, status: int = 200) -> None:
        """Answer `METHOD /path` with the documents, one after the other."""
        self.answers[request] = [(status, document) for document in documents]

    def refuse(self, request: str, status: int, message: str, code: str = "refused") -> None:
        """Answer `METHOD /path` with the API's error shape."""
        self.on(
            request, {"error": {"code": code, "message": message, "field": None, "request_id": "r1"}}, status=status
        )

    def answer(self, seen: Seen) -> tuple[int, Any]:
        self.seen.append(seen)
        told = self.answers.get(f"{seen.method} {seen.path}")
        if not told:
            return 404, {"error": {"code": "not_found", "message": f"no {seen.path}", "field": None, "request_id": ""}}
        return told.pop(0) if len(told) > 1 else told[0]


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen = Seen(
                self.command,
                self.path.removeprefix("/api/v1"),
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
            status, document = api.answer(seen)
            if not status:
                self.close_connection = True
                return
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(0 if status == 204 else len(content)))
            if status == 429 and api.retry_after:
                self.send_header("Retry-After", api.retry_after)
            if name := api.filenames.get(f"{seen.method} {seen.path}"):
                self.send_header("Content-Disposition", f'attachment; filename="{name}"')
            self.end_headers()
            if status != 204:
                self.wfile.write(content)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names are the base class's

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def api() -> Iterator[Api]:
    """A server that nothing was told yet: everything is 404."""
    told = Api()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(told))
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and an environment that knows no control plane and no person's files."""
    for name in ("FAIRLEAD_URL", "FAIRLEAD_TOKEN", "FAIRLEAD_HOME", "XDG_CONFIG_HOME", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fairlead(
    api: Api, at_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command against `api`; returns exit code, standard output and standard error."""
    monkeypatch.setenv("FAIRLEAD_URL", api.url)
    monkeypatch.setenv("FAIRLEAD_TOKEN", "flt_test")

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as ended:  # argparse
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a SQLite database with all tables, to be copied; made before a test has a cache folder of its own."""
    file = tmp_path_factory.mktemp("migrated") / "fairlead.sqlite3"
    copy_sqlite(file)
    return file
