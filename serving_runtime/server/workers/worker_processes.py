"""Worker processes of one server: shared sockets, one metrics page, and the same models.

    bind --reuse--> start workers -> all listen -> (port file) -> ... --SIGTERM--> workers finish -> exit 0

The kernel distributes connections among the workers: each binds the same port, or inherits the one Unix socket. When a
worker ends the whole server ends; its supervisor restarts it. Commands on the models of all workers go through this
process: see worker_ipc.py.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from serving_runtime.common.isolation import interpreter
from serving_runtime.common.request import Cancellable
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http.wire.message import Reply, Request, Response, text_error
from serving_runtime.server import serve
from serving_runtime.server.flags.command_line import Options
from serving_runtime.server.flags.types import INHERITED
from serving_runtime.server.sockets import (
    SocketFile,
    StartError,
    bind,
    is_shared_by_port,
    listen,
    place,
    write_port_file,
)
from serving_runtime.server.workers.worker_engine import IN_ORDER
from serving_runtime.server.workers.worker_ipc import Hub
from serving_runtime.telemetry.metrics import text
from serving_runtime.telemetry.metrics.merged_pages import summed

_LOOK_EVERY_S = 0.02
_PAGE_TIMEOUT_S = 10


class Worker(NamedTuple):
    """One process.

    Attributes:
        name: by which `join` knows its metrics page.
        environment: variables that it has beside this process's.
        flags: appended to those of the command line.
    """

    name: str
    environment: Mapping[str, str]
    flags: Sequence[str] = ()


Join = Callable[[Mapping[str, str]], str]
"""Merges the workers' metrics pages, by their names, into one page."""


def alike(count: int) -> list[Worker]:
    """Return workers that share the machine's devices; the first shows the machine's own metrics."""
    silent = ("--allow-cpu-metrics=false", "--allow-gpu-metrics=false")
    return [Worker(str(number), {}, silent if number else ()) for number in range(count)]


def sum_of(pages: Mapping[str, str]) -> str:
    """Return one metrics page of equal workers."""
    return summed(list(pages.values()))


def check_shareable(options: Options, what: str) -> None:
    """Raise StartError for options that would reach one of several workers only; `what` names them."""
    for asked, flag in (
        (options.models.pool is not None, "--model-pool"),
        (options.models.load_on_demand, "--load-on-demand"),
        (options.allow_client_shm, "--allow-client-shm"),
    ):
        if asked:
            raise StartError(
                f"{flag} does not go with {what}: they are served by as many processes, and a request "
                "reaches one of them; leave one of the two out"
            )


class Workers:
    """The workers of a server, over its lifetime."""

    def __init__(self, options: Options, arguments: Sequence[str], workers: Sequence[Worker], join: Join) -> None:
        self._options = options
        self._arguments = arguments
        self._workers = workers
        self._join = join
        self._hub = Hub(len(workers), IN_ORDER)
        self._members: set[asyncio.Task[None]] = set()
        self._processes: list[asyncio.subprocess.Process] = []
        self._pages: dict[str, str] = {}
        self._files: list[SocketFile] = []
        self._stop = asyncio.Event()

    async def run(self) -> int:
        serve.open_log(self._options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        with tempfile.TemporaryDirectory(prefix="fairlead-workers-") as folder:
            try:
                return await self._serve(Path(folder))
            finally:
                await self._end()
                for file in self._files:
                    file.remove()

    async def _serve(self, folder: Path) -> int:
        options = self._options
        places: dict[str, int | str] = {}
        held: dict[str, socket.socket] = {}  # held until the workers have bound it: no other process takes a free port
        for name, allow, address, port in (
            ("http", options.http.allow, options.http.address, options.http.port),
            ("grpc", options.grpc.allow, options.grpc.address, options.grpc.port),
        ):
            if allow:
                if port and is_shared_by_port(address):  # another server sharing it would go unnoticed
                    bind(address, port, name).close()
                held[name] = self._bind(name, address, port, places, reuse_port=True)
        metrics = None
        if options.metrics.allow:
            metrics = self._bind("metrics", options.metrics.address, options.metrics.port, places)
        for number, worker in enumerate(self._workers):
            await self._start(worker, folder / f"{number}.json", held)
        if not await self._until_ready(folder):
            return 0 if self._stop.is_set() else 1
        for sock in held.values():
            sock.close()
        if metrics is not None:
            await self._show(metrics)
        serve.log_ready(places)
        if options.port_file is not None:
            write_port_file(options.port_file, places)
        ended = [asyncio.ensure_future(process.wait()) for process in self._processes]
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([*ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            sys.stderr.write("fairlead-serve: one of its workers has ended, and the others with it\n")
            return 1
        stopped.cancel()
        await self._end()
        return max(process.returncode or 0 for process in self._processes)

    def _bind(
        self, name: str, address: str, port: int, places: dict[str, int | str], *, reuse_port: bool = False
    ) -> socket.socket:
        sock = bind(address, port, name, reuse_port=reuse_port)
        places[name] = place(sock)
        if file := SocketFile.of(address):
            self._files.append(file)
        return sock

    async def _start(self, worker: Worker, port_file: Path, sockets: Mapping[str, socket.socket]) -> None:
        own = [f"--port-file={port_file}", "--metrics-port=0", "--metrics-address=127.0.0.1"]
        ours, theirs = socket.socketpair()
        left_open = [theirs.fileno()]
        for name, sock in sockets.items():
            if sock.family == socket.AF_UNIX:
                own.append(f"--{name}-address={INHERITED}{sock.fileno()}")
                left_open.append(sock.fileno())
            else:
                own += [f"--{name}-port={place(sock)}", f"--reuse-{name}-port=true"]
        environment = {**os.environ, **worker.environment, serve.ONE_OF_SEVERAL: str(theirs.fileno())}
        command = [*interpreter(), "-m", "serving_runtime", *self._arguments, *own, *worker.flags]
        started = asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True, pass_fds=left_open)
        with theirs:
            self._processes.append(await started)
        self._members.add(asyncio.create_task(self._hub.serve(*await asyncio.open_unix_connection(sock=ours))))

    async def _until_ready(self, folder: Path) -> bool:
        """Return whether all workers listen; False where one has ended or the server is stopping."""
        files = [folder / f"{number}.json" for number in range(len(self._workers))]
        while not all(file.exists() for file in files):
            if self._stop.is_set() or any(process.returncode is not None for process in self._processes):
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        if self._options.metrics.allow:
            for worker, file in zip(self._workers, files, strict=True):
                self._pages[worker.name] = f"http://127.0.0.1:{json.loads(file.read_text())['metrics']}/metrics"
        return True

    async def _show(self, sock: socket.socket) -> None:
        listener = Listener(self, sock, HttpLimits())
        await listen(listener, self._options.metrics.address, place(sock), "metrics")

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        """Serve GET /metrics with the workers' pages."""
        if (request.method, request.target.split(b"?", 1)[0]) != (b"GET", b"/metrics"):
            reply(text_error(404, "there is nothing here but GET /metrics"))
            return None
        asked = asyncio.get_running_loop().run_in_executor(None, self._page)
        asked.add_done_callback(lambda done: reply(_answer(done)))
        return None

    def _page(self) -> bytes:
        pages = {}
        for name, url in self._pages.items():
            with urllib.request.urlopen(url, timeout=_PAGE_TIMEOUT_S) as answer:  # noqa: S310 - a worker's
                pages[name] = answer.read().decode()
        return self._join(pages).encode()

    async def _end(self) -> None:
        """Have the workers drain accepted requests, within the exit timeout."""
        running = [process for process in self._processes if process.returncode is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        if running:
            waits = [asyncio.ensure_future(process.wait()) for process in running]
            await asyncio.wait(waits, timeout=self._options.exit_timeout_s + 5)
        for process in running:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _answer(done: "asyncio.Future[bytes]") -> Response:
    if done.exception() is not None:
        return text_error(503, f"a worker returned no metrics: {done.exception()}")
    page = done.result()
    return Response(200, f"Content-Type: {text.CONTENT_TYPE}\r\n".encode(), (page,), len(page))
