"""One worker process per MIG slice: under MIG a CUDA process sees one slice (NVIDIA: MIG user guide).

whole GPUs, or none   this process serves
one slice             this process serves, and CUDA is shown the slice by its UUID
several slices        this process starts a worker for each; they share the HTTP and gRPC ports, their metrics are
                      one page. A worker that ends takes the others along: whoever started the server starts it anew
"""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import uvloop

from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import CUDA_VISIBLE, Gpu
from serving_runtime.protocol.http.limits import HttpLimits
from serving_runtime.protocol.http.listener import Listener
from serving_runtime.protocol.http.message import Reply, Request, Response, text_error
from serving_runtime.request import Cancellable
from serving_runtime.server import serve
from serving_runtime.server.options import Options
from serving_runtime.server.sockets import StartError, bind, listen, write_port_file
from serving_runtime.telemetry import text
from serving_runtime.telemetry.joined import joined

_LOOK_EVERY_S = 0.02
_PAGE_TIMEOUT_S = 10


def run(options: Options, arguments: Sequence[str]) -> int:
    """Serve until told to stop; returns the exit code. Raises ServingError when the server cannot start."""
    gpus = nvml.mine().gpus
    slices = [gpu for gpu in gpus if gpu.profile]
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML numbers them, and all libraries alike
    if not slices:
        return serve.run(options)
    if len(slices) < len(gpus):
        raise StartError(
            f"this process is shown {len(slices)} MIG slices and {len(gpus) - len(slices)} whole GPUs, and CUDA sees "
            f"one kind or the other; choose by {CUDA_VISIBLE}"
        )
    if len(slices) == 1:
        os.environ[CUDA_VISIBLE] = slices[0].uuid
        return serve.run(options)
    check_shareable(options, len(slices))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_Workers(options, arguments, slices).run())


def check_shareable(options: Options, workers: int) -> None:
    """Raise StartError for what would reach one of several workers only."""
    for asked, flag in (
        (options.models.control_mode == "explicit", "--model-control-mode=explicit"),
        (options.models.load_on_demand, "--load-on-demand"),
        (options.allow_client_shm, "--allow-client-shm"),
    ):
        if asked:
            raise StartError(
                f"{flag} does not go with {workers} MIG slices: they are served by as many processes, and a request "
                f"reaches one of them; give the server one slice by {CUDA_VISIBLE}"
            )


class _Workers:
    def __init__(self, options: Options, arguments: Sequence[str], slices: Sequence[Gpu]) -> None:
        self._options = options
        self._arguments = arguments
        self._slices = slices
        self._processes: list[asyncio.subprocess.Process] = []
        self._pages: dict[str, str] = {}
        self._stop = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        with tempfile.TemporaryDirectory(prefix="fairlead-slices-") as folder:
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
                held.append(bind(address, port, f"--{name}-port", reuse_port=True))
                ports[name] = held[-1].getsockname()[1]
        metrics = None
        if options.metrics.allow:
            metrics = bind(options.metrics.address, options.metrics.port, "--metrics-port")
            ports["metrics"] = metrics.getsockname()[1]
        for number, one in enumerate(self._slices):
            await self._start(one, folder / f"{number}.json", ports, first=number == 0)
        if not await self._until_ready(folder):
            return 0 if self._stop.is_set() else 1
        for sock in held:
            sock.close()
        if metrics is not None:
            await self._show(metrics)
        if options.port_file is not None:
            write_port_file(options.port_file, ports)
        ended = [asyncio.ensure_future(process.wait()) for process in self._processes]
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([*ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            sys.stderr.write("fairlead-serve: a worker of a MIG slice has ended, and the others with it\n")
            return 1
        stopped.cancel()
        await self._end()
        return max(process.returncode or 0 for process in self._processes)

    async def _start(self, one: Gpu, port_file: Path, ports: dict[str, int], *, first: bool) -> None:
        own = [f"--port-file={port_file}", "--metrics-port=0", "--metrics-address=127.0.0.1"]
        own += [f"--{name}-port={ports[name]}" for name in ("http", "grpc") if name in ports]
        own += [f"--reuse-{name}-port=true" for name in ("http", "grpc") if name in ports]
        own += [] if first else ["--allow-cpu-metrics=false"]  # the machine's, which is the same for all
        environment = {**os.environ, CUDA_VISIBLE: one.uuid, serve.ONE_OF_SEVERAL: "1"}
        command = [sys.executable, "-m", "serving_runtime", *self._arguments, *own]
        self._processes.append(await asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True))

    async def _until_ready(self, folder: Path) -> bool:
        """Return whether all workers listen; not where one has ended or the server is to stop."""
        files = [folder / f"{number}.json" for number in range(len(self._slices))]
        while not all(file.exists() for file in files):
            if self._stop.is_set() or any(process.returncode is not None for process in self._processes):
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        if self._options.metrics.allow:
            for one, file in zip(self._slices, files, strict=True):
                self._pages[one.uuid] = f"http://127.0.0.1:{json.loads(file.read_text())['metrics']}/metrics"
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
        for uuid, url in self._pages.items():
            with urllib.request.urlopen(url, timeout=_PAGE_TIMEOUT_S) as answer:  # noqa: S310 - a worker's
                pages[uuid] = answer.read().decode()
        return joined(pages).encode()

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
