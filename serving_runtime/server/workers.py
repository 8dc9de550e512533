"""Several worker processes that are one server: on the same ports, with one metrics page, and the same models.

    bind --reuse--> start workers -> all listen -> (port file) -> ... --SIGTERM--> workers finish -> exit 0

The kernel shares connections out among the workers. A worker that ends takes the others along: whoever started the
server starts it anew. What concerns the models of all goes through this process: see carrying.py.
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

from serving_runtime.isolation import interpreter
from serving_runtime.protocol.http.limits import HttpLimits
from serving_runtime.protocol.http.listener import Listener
from serving_runtime.protocol.http.message import Reply, Request, Response, text_error
from serving_runtime.request import Cancellable
from serving_runtime.server import serve
from serving_runtime.server.carrying import Hub
from serving_runtime.server.one_of_several import IN_ORDER
from serving_runtime.server.options import Options
from serving_runtime.server.sockets import StartError, bind, listen, write_port_file
from serving_runtime.telemetry import text
from serving_runtime.telemetry.joined import summed

_LOOK_EVERY_S = 0.02
_PAGE_TIMEOUT_S = 10


class Worker(NamedTuple):
    """One process.

    Attributes:
        name: by which `join` knows its metrics page.
        environment: variables that it has beside this process's.
        flags: behind those of the command line.
    """

    name: str
    environment: Mapping[str, str]
    flags: Sequence[str] = ()


Join = Callable[[Mapping[str, str]], str]
"""From the workers' metrics pages, by their names, to the one page."""


def alike(count: int) -> list[Worker]:
    """Return workers that share whatever the machine has; what is the machine's, the first of them shows."""
    silent = ("--allow-cpu-metrics=false", "--allow-gpu-metrics=false")
    return [Worker(str(number), {}, silent if number else ()) for number in range(count)]


def sum_of(pages: Mapping[str, str]) -> str:
    """Return one metrics page of workers that are alike."""
    return summed(list(pages.values()))


def check_shareable(options: Options, what: str) -> None:
    """Raise StartError for what would reach one of several workers only; `what` names them."""
    for asked, flag in (
        (options.models.load_on_demand, "--load-on-demand"),
        (options.allow_client_shm, "--allow-client-shm"),
    ):
        if asked:
            raise StartError(
                f"{flag} does not go with {what}: they are served by as many processes, and a request "
                "reaches one of them; leave one of the two out"
            )


class Workers:
    """The workers of a server, from start to end."""

    def __init__(self, options: Options, arguments: Sequence[str], workers: Sequence[Worker], join: Join) -> None:
        self._options = options
        self._arguments = arguments
        self._workers = workers
        self._join = join
        self._hub = Hub(len(workers), IN_ORDER)
        self._meeting: asyncio.Server | None = None
        self._processes: list[asyncio.subprocess.Process] = []
        self._pages: dict[str, str] = {}
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

    async def _serve(self, folder: Path) -> int:
        options = self._options
        ports: dict[str, int] = {}
        held = []  # so that nobody else takes a port that was free, until the workers have it
        for name, allow, address, port in (
            ("http", options.http.allow, options.http.address, options.http.port),
            ("grpc", options.grpc.allow, options.grpc.address, options.grpc.port),
        ):
            if allow:
                if port:  # of another server, which shares it too, nobody would be told otherwise
                    bind(address, port, f"--{name}-port").close()
                held.append(bind(address, port, f"--{name}-port", reuse_port=True))
                ports[name] = held[-1].getsockname()[1]
        metrics = None
        if options.metrics.allow:
            metrics = bind(options.metrics.address, options.metrics.port, "--metrics-port")
            ports["metrics"] = metrics.getsockname()[1]
        meeting = folder / "workers.sock"
        self._meeting = await asyncio.start_unix_server(self._hub.serve, meeting)  # there as long as it is kept
        for number, worker in enumerate(self._workers):
            await self._start(worker, folder / f"{number}.json", meeting, ports)
        if not await self._until_ready(folder):
            return 0 if self._stop.is_set() else 1
        for sock in held:
            sock.close()
        if metrics is not None:
            await self._show(metrics)
        serve.tell_ready(ports)
        if options.port_file is not None:
            write_port_file(options.port_file, ports)
        ended = [asyncio.ensure_future(process.wait()) for process in self._processes]
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([*ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            sys.stderr.write("fairlead-serve: one of its workers has ended, and the others with it\n")
            return 1
        stopped.cancel()
        await self._end()
        return max(process.returncode or 0 for process in self._processes)

    async def _start(self, worker: Worker, port_file: Path, meeting: Path, ports: dict[str, int]) -> None:
        own = [f"--port-file={port_file}", "--metrics-port=0", "--metrics-address=127.0.0.1"]
        own += [f"--{name}-port={ports[name]}" for name in ("http", "grpc") if name in ports]
        own += [f"--reuse-{name}-port=true" for name in ("http", "grpc") if name in ports]
        environment = {**os.environ, **worker.environment, serve.ONE_OF_SEVERAL: str(meeting)}
        command = [*interpreter(), "-m", "serving_runtime", *self._arguments, *own, *worker.flags]
        self._processes.append(await asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True))

    async def _until_ready(self, folder: Path) -> bool:
        """Return whether all workers listen; not where one has ended or the server is to stop."""
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
        await listen(listener, self._options.metrics.address, sock.getsockname()[1], "--metrics-port")

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        """Answer GET /metrics with the workers' pages."""
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
        """Have the workers finish what they accepted, for as long as the exit timeout says."""
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
        return text_error(503, f"a worker does not tell its metrics: {done.exception()}")
    page = done.result()
    return Response(200, f"Content-Type: {text.CONTENT_TYPE}\r\n".encode(), (page,), len(page))
