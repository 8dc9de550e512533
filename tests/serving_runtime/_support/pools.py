"""Catalogs, fetchers and runtimes of model pools for tests: real processes on Unix sockets and local ports."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.pools import catalog
from serving_runtime.pools.fetcher import Fetcher, FetcherSettings
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import START_S, ServerProcess

DEADLINE_S = 30.0
ONE_TRY = Patience(tries=1)


def wait_until(found: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not found():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_S:g} s: {what}")
        time.sleep(0.005)


def version(origin: Path | str, digest: str = "", **config: Any) -> dict[str, Any]:
    """A catalog's entry of one version."""
    digest = digest or digest_of_folder(Path(origin))
    return {"digest": digest, "origin": str(origin), "checked": True, **({"config": config} if config else {})}


def write(folder: Path, model: str, versions: dict[int, dict[str, Any]], **rest: Any) -> Path:
    """Write a document by rename, as the control plane does."""
    file = catalog.place(folder, model)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"schema": 1, "default": max(versions), "versions": {str(k): v for k, v in versions.items()}, **rest}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.replace(file)
    return file


def artifact(folder: Path, width: int = 3, rows: int = 4) -> Path:
    """An artifact of one model, x [N,rows] -> y [N,width]."""
    onnx_models.mlp(folder / "model.onnx", (rows, width))
    return folder


@dataclass
class Place:
    """The folders of one pool; the socket is in a short path, as the kernel wants it."""

    catalog: Path
    cache: Path
    socket: Path
    short: Path = field(default_factory=Path)

    @classmethod
    def below(cls, folder: Path) -> "Place":
        short = Path(tempfile.mkdtemp(prefix="pool-"))
        (folder / "catalog").mkdir(exist_ok=True)
        return cls(folder / "catalog", folder / "cache", short / "s", short)


def _listens(path: Path) -> bool:
    """Return whether a socket takes connections: its file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as attempt:
        return attempt.connect_ex(str(path)) == 0


@contextmanager
def fetcher(place: Place, *flags: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run `pool-fetcher` until the block ends."""
    command = [
        *(sys.executable, "-m", "serving_runtime", "pool-fetcher", f"--catalog={place.catalog}"),
        *(f"--cache={place.cache}", f"--socket={place.socket}", *flags),
    ]
    place.socket.unlink(missing_ok=True)
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: _listens(place.socket) or process.poll() is not None, "the fetcher listens")
            assert process.poll() is None, "the fetcher ended"
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def fetcher_here(place: Place, **settings: Any) -> Iterator[None]:
    """Run a fetcher in a thread of this process, which takes a tenth of a process's time to begin."""
    given = {"cache_max_bytes": 1 << 30, **settings}
    chosen = FetcherSettings(catalog=catalog.Folder(place.catalog), cache=place.cache, **given)
    started, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        served = Fetcher(chosen)
        await served.start(place.socket)
        started.set()
        await stop.wait()
        await served.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert started.wait(DEADLINE_S)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@contextmanager
def runtime(place: Place, scratch: Path, *flags: str) -> Iterator[ServerProcess]:
    """Run the runtime of a pool until the block ends."""
    ports = scratch / f"ports-{time.monotonic_ns()}.json"
    addresses = [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")]
    numbers = [f"--{kind}-port=0" for kind in ("http", "grpc", "metrics")]
    command = [
        *(sys.executable, "-m", "serving_runtime", f"--model-pool={place.socket}", f"--port-file={ports}"),
        *(*addresses, *numbers, *flags),
    ]
    with subprocess.Popen(command, text=True) as process:
        try:
            deadline = time.monotonic() + START_S
            while not ports.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the runtime did not come up")
                time.sleep(0.01)
            yield ServerProcess(process, **json.loads(ports.read_text()))
        finally:
            if process.poll() is None:
                process.kill()


class Peer:
    """A runtime's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rwb")

    def close(self) -> None:
        self._file.close()

    def send(self, **asked: Any) -> None:
        self._file.write(json.dumps(asked).encode() + b"\n")
        self._file.flush()

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file.readline())
        return found

    def ask(self, **asked: Any) -> dict[str, Any]:
        self.send(id=7, **asked)
        return self.read()

    def fails(self, **asked: Any) -> tuple[str, str]:
        error = self.ask(**asked)["error"]
        return error["kind"], error["message"]


@contextmanager
def peer(place: Place) -> Iterator[Peer]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(DEADLINE_S)
        sock.connect(str(place.socket))
        found = Peer(sock)
        try:
            yield found
        finally:
            found.close()


def remove(place: Place) -> None:
    shutil.rmtree(place.short, ignore_errors=True)


class Store:
    """A store of files over HTTP, which counts requests and may be slow, or gone."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.is_gone = False
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                store.asked.append(self.path)
                store.go_on.wait(DEADLINE_S)
                content = None if store.is_gone else files.get(self.path)
                self.send_response(200 if content is not None else 503)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "Store":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


RUNS = '''"""Runs what a request says, as code that nobody trusts may: the value of `found`, as a text."""

import numpy as np
from fairlead_python import BYTES


def predict(code: BYTES[1]) -> BYTES[1]:
    names = {}
    exec(code.reshape(-1)[0], names)
    return np.array([str(names.get("found")).encode()], object)
'''


def code(folder: Path, text: str = RUNS) -> Path:
    """An artifact of a model in Python."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(text)
    return folder


def run(runtime: ServerProcess, service: str, text: str) -> str:
    """Run code in the worker of a model of `RUNS`, ns.<service>; returns its `found`, or the error of the answer."""
    asked = {"inputs": [{"name": "code", "datatype": "BYTES", "shape": [1], "data": [text]}]}
    path = f"/serving/ns/{service}/v2/models/{service}/infer"
    answer = httpx.post(f"{runtime.url}{path}", json=asked, timeout=60).json()
    return str(answer["outputs"][0]["data"][0] if "outputs" in answer else answer["error"])
