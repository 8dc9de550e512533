"""Server lifecycle: startup, serving, graceful shutdown.

    bind -> load -> listen -> (port file) -> serve --SIGTERM--> not ready -> finish what was accepted -> exit 0

A second signal, or the exit timeout, ends the process at once with 1.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop

from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.loading.settings import LoadSettings, PoolCode
from serving_runtime.engine.memory import process_memory
from serving_runtime.engine.memory.budget import SHARE
from serving_runtime.engine.memory.idle_memory_trim import EVERY_S, IdleMemoryTrim
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.observers import Observers
from serving_runtime.pools.source import ModelPool
from serving_runtime.protocol import tls
from serving_runtime.protocol.caller_limit import UnansweredRequests
from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.request_memory import RequestMemory, default_limit_bytes
from serving_runtime.protocol.settings import LOG, TRACE, RuntimeSettings
from serving_runtime.scheduler.cache.response_cache import ResponseCache
from serving_runtime.scheduler.rate_limiter import RateLimiter
from serving_runtime.server.endpoints import again_and_again, grpc_server, http_listener, metrics_listener
from serving_runtime.server.flags.command_line import Options
from serving_runtime.server.flags.payload_logger import open_logger
from serving_runtime.server.flags.tap import open_tap
from serving_runtime.server.sockets import SocketFile, StartError, bind, bind_grpc, listen, place, write_port_file
from serving_runtime.server.workers.worker_engine import OneOfSeveral
from serving_runtime.server.workers.worker_ipc import Channel, Member
from serving_runtime.shared import json_log, otlp
from serving_runtime.telemetry.log_settings import JSON, LogControl
from serving_runtime.telemetry.tap.taps import LOGGER_METRIC, TAP_METRIC, Taps
from serving_runtime.telemetry.tracing.otlp import OtlpSink
from serving_runtime.telemetry.tracing.settings import TRITON
from serving_runtime.telemetry.tracing.tracer import Sink, Tracer
from serving_runtime.telemetry.tracing.triton_file import TritonFile

logger = logging.getLogger(__name__)

ONE_OF_SEVERAL = "FAIRLEAD_ONE_OF_SEVERAL"
"""The environment variable that marks a worker: the number of the open socket to its parent process."""

_SWITCH_INTERVAL_S = 0.0005
"""GIL switch interval; Python's 5 ms would be added to every threaded model."""

_LAST_ACCEPT_S = 0.02
"""Delay between not ready and closing the sockets: the kernel's accepted connections are still served."""


_SHARE_INTERVAL_S = 0.5
"""How often the payload tap checks whether its share was changed."""


def run(options: Options) -> int:
    """Serve until terminated; returns the exit code. Raises ServingError when the server cannot start."""
    log = open_log(options)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    process_memory.keep_one_heap()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Server(options, log).run())


def open_log(options: Options) -> LogControl:
    """Return the configured log; raises StartError where it cannot be written."""
    log = LogControl(options.log)
    try:
        log.open()
    except OSError as error:
        raise StartError(f"--log-file {options.log.log_file} cannot be written: {error.strerror}") from error
    if options.log.log_format == JSON:
        json_log.log_uncaught()
    return log


def log_ready(places: Mapping[str, int | str]) -> None:
    """Log that a server is ready, and where each endpoint is."""
    logger.info(
        "ready on %s",
        ", ".join(f"{name} port {at}" if isinstance(at, int) else f"{name} {at}" for name, at in places.items()),
    )


def _budget_bytes(asked: int | None, workers: int) -> int | None:
    """Return the configured budget; by default a share of this process's memory limit that is unused."""
    if asked is not None:
        return asked // workers or None
    return max(0, int(process_memory.limit_bytes() * SHARE) // workers - process_memory.resident_bytes())


def _request_memory(options: Options) -> RequestMemory:
    """Return the memory limit of this process's unfinished requests together."""
    asked = options.max_request_memory_bytes
    if asked is None:
        return RequestMemory(
            default_limit_bytes(process_memory.limit_bytes(), options.http.max_input_bytes, options.workers)
        )
    return RequestMemory(asked // options.workers)


def make_engine(every: Options, observers: Observers | None = None, pool: ModelPool | None = None) -> Engine:
    """Return the configured engine, without loaded models."""
    options = every.models
    budget_bytes = _budget_bytes(options.memory_budget_bytes, every.workers)
    settings = LoadSettings(
        auto_complete=options.auto_complete,
        backend_settings=options.backend_config,
        backend_directory=options.backend_directory,
        allow_python_models=options.allow_python_models and pool is None,
        pool=PoolCode(options.allow_python_models, options.sandboxed_model_memory_bytes) if pool is not None else None,
        config_name=options.config_name,
        retry_count=options.load_retry_count,
        summaries=every.metrics.settings.summary_latencies,
        one_of_several=ONE_OF_SEVERAL in os.environ,
        memory_bytes=budget_bytes,
        guards_others=not options.exit_on_error,  # otherwise a failed load ends the server during startup anyway
        cache_directory=options.cache_directory,
    )
    control = Control(
        mode=ControlMode(options.control_mode),
        load_models=options.load_models,
        poll_secs=options.poll_secs,
        load_threads=options.load_thread_count,
        memory_budget_bytes=budget_bytes,
        cache_directory=options.cache_directory,
        on_demand=options.load_on_demand,
        on_demand_timeout_s=options.load_on_demand_timeout_s,
    )
    return (OneOfSeveral if settings.one_of_several else Engine)(
        options.repositories,
        settings,
        control,
        name=every.id,
        strict_readiness=options.strict_readiness,
        max_concurrent_requests=every.max_concurrent_requests,
        rate_limiter=RateLimiter(options.rate_limit_resources) if options.rate_limit else None,
        response_cache=ResponseCache(every.models.cache_bytes) if every.models.cache_bytes else None,
        shared_memory=SharedMemory(allowed=every.allow_client_shm, max_read_bytes=every.http.max_input_bytes),
        control_calls=every.allow_control_calls,
        observers=observers,
        source=pool,
    )


def _sink(options: Options) -> Sink:
    """Return the trace exporter; raises StartError where it cannot be made."""
    if options.trace.mode == TRITON:
        folder = Path(options.trace.file).parent
        if options.trace.file and not os.access(folder, os.W_OK):
            raise StartError(f"--trace-config triton,file={options.trace.file}: nothing can be written to {folder}")
        return TritonFile(options.trace.file)
    try:
        return OtlpSink(options.trace, options.id)
    except ImportError as error:
        if options.trace.by_variable:
            logger.warning(
                "%s is set, but the OpenTelemetry SDK is missing: no spans are sent: %s", otlp.VARIABLE, error
            )
            return TritonFile("")
        hint = "pip install 'fairlead[tracing]'"
        raise StartError(f"--trace-config mode=opentelemetry needs the OpenTelemetry SDK ({hint}): {error}") from error


def open_taps(options: Options) -> Taps:
    """Return the configured recorders; raises StartError where they cannot be made."""
    source = f"/{options.id}/{socket.gethostname()}/{os.getpid()}"
    found = {}
    if options.tap.url:
        found[TAP_METRIC] = open_tap(options.tap, source)
    if options.logger.url:
        found[LOGGER_METRIC] = open_logger(options.logger, source)
    return Taps(found)


class Server:
    """The endpoints of one process and the engine behind them."""

    def __init__(self, options: Options, log: LogControl) -> None:
        self._options = options
        self._stop = asyncio.Event()
        self._places: dict[str, int | str] = {}
        self._files: list[SocketFile] = []
        self._http: Listener | None = None
        self._metrics: Listener | None = None
        self._grpc: Http2GrpcServer | None = None
        self._secured: ssl.SSLContext | None = None
        self._taps = open_taps(options)
        self._request_memory = _request_memory(options)
        self._unanswered = UnansweredRequests()
        tracer = Tracer(options.trace, _sink(options))
        place = options.models.pool
        self._pool = ModelPool(place, options.models.load_on_demand_timeout_s) if place is not None else None
        self._engine = make_engine(options, Observers(tracer, self._taps), self._pool)
        self._engine.shared_memory.copies = self._request_memory.copies
        carry = self._engine.all_do if isinstance(self._engine, OneOfSeveral) else None
        self._settings = RuntimeSettings(log, tracer, carry)

    async def run(self) -> int:
        try:
            return await self._run()
        finally:
            for file in self._files:
                file.remove()

    async def _run(self) -> int:
        options = self._options
        http = None
        if options.http.allow:
            self._secured = self._tls_context()
            http = self._bind("http", options.http.address, options.http.port, reuse_port=options.http.reuse_port)
        if options.grpc.allow:
            self._grpc = self._grpc_server()
        metrics = None
        if options.metrics.allow:
            metrics = self._bind("metrics", options.metrics.address, options.metrics.port)
        if isinstance(self._engine, OneOfSeveral):
            await self._join(self._engine)
        await self._load()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        await self._listen(http, metrics)
        if options.tap.share_file is not None:
            again_and_again(self._taps.look, _SHARE_INTERVAL_S)
        if isinstance(self._engine, OneOfSeveral):  # its metrics port is for its parent process only
            logger.info("worker process %d is ready", os.getpid())
        else:
            log_ready(self._places)
        if options.port_file is not None:
            write_port_file(options.port_file, self._places)
        await self._stop.wait()
        return await self._drain()

    async def _join(self, engine: OneOfSeveral) -> None:
        """Connect to the other workers; without the parent process there is no server."""
        try:
            sock = socket.socket(fileno=int(os.environ[ONE_OF_SEVERAL]))
        except (OSError, ValueError) as error:
            raise StartError(f"{ONE_OF_SEVERAL} is for workers that a server starts: {error}") from error
        sock.set_inheritable(False)
        channel = Channel(*await asyncio.open_unix_connection(sock=sock))
        settings = self._settings
        does = {**engine.does, LOG: settings.change_log_here, TRACE: settings.change_trace_here}
        engine.member = Member(channel, does, self._on_orphaned)

    def _on_orphaned(self) -> None:
        if not self._stop.is_set():
            self._on_signal()

    def _grpc_server(self) -> Http2GrpcServer:
        options = self._options.grpc
        try:
            server = grpc_server(
                self._options,
                self._engine,
                self._settings,
                self._taps,
                memory=self._request_memory,
                unanswered=self._unanswered,
                pool=self._pool,
            )
        except ValueError as error:
            raise StartError(str(error)) from error
        reuse_port = options.settings.reuse_port
        self._places["grpc"] = bind_grpc(server, options.address, options.port, reuse_port=reuse_port)
        self._keep(options.address)
        return server

    def _tls_context(self) -> ssl.SSLContext | None:
        files = self._options.http.tls
        try:
            return tls.context(files, ("http/1.1",)) if files is not None else None
        except ValueError as error:
            raise StartError(str(error)) from error

    def _bind(self, name: str, address: str, port: int, *, reuse_port: bool = False) -> socket.socket:
        sock = bind(address, port, name, reuse_port=reuse_port)
        self._places[name] = place(sock)
        self._keep(address)
        return sock

    def _keep(self, address: str) -> None:
        if file := SocketFile.of(address):
            self._files.append(file)

    async def _load(self) -> None:
        errors = await self._engine.load_all()
        if errors and self._options.models.exit_on_error:
            raise StartError(str(errors[0]))
        for error in errors:
            logger.error("%s", error)
        gc.collect()
        gc.freeze()  # loaded objects are permanent; exclude them from garbage collection
        self._engine.guard_others()
        self._engine.start_polling()
        if self._pool is not None:
            self._pool.start()
        again_and_again(IdleMemoryTrim().look, EVERY_S)

    async def _listen(self, http: socket.socket | None, metrics: socket.socket | None) -> None:
        if http is not None:
            self._http = http_listener(
                self._options,
                self._engine,
                self._settings,
                http,
                self._taps,
                memory=self._request_memory,
                unanswered=self._unanswered,
                secured=self._secured,
                pool=self._pool,
            )
            await listen(self._http, self._options.http.address, self._places["http"], "http")
        if metrics is not None:
            self._metrics = metrics_listener(
                self._options.metrics,
                self._engine,
                metrics,
                self._taps,
                memory=self._request_memory,
                pool=self._pool,
            )
            await listen(self._metrics, self._options.metrics.address, self._places["metrics"], "metrics")
        if self._grpc is not None:
            await self._grpc.start()

    def _on_signal(self) -> None:
        if self._stop.is_set():
            sys.stderr.write("fairlead-serve: second stop signal, exiting immediately\n")
            sys.stderr.flush()
            os._exit(1)
        self._engine.draining = True
        if self._http is not None:
            self._http.draining = True
        self._stop.set()

    async def _drain(self) -> int:
        """Drain accepted requests; returns 0, or 1 when the exit timeout came first."""
        timeout_s = self._options.exit_timeout_s
        logger.info("stopping: %d requests in flight, at most %d s to finish them", self._engine.inflight, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(_LAST_ACCEPT_S)
                await asyncio.gather(self._drain_http(), self._drain_grpc(timeout_s))
        except TimeoutError:
            left = self._engine.inflight
            if left or (self._http is not None and self._http.busy):
                sys.stderr.write(f"fairlead-serve: exit timeout of {timeout_s} s is over, {left} requests unfinished\n")
                sys.stderr.flush()
                os._exit(1)  # a model's thread may never return
            if self._http is not None:
                self._http.abort()
        if self._metrics is not None:
            self._metrics.stop_accepting()
            self._metrics.abort()
        if isinstance(self._engine, OneOfSeveral):
            self._engine.member.close()
        self._engine.close()
        if self._pool is not None:
            self._pool.close()
        self._taps.close()
        self._settings.tracer.close()
        logger.info("stopped")
        return 0

    async def _drain_http(self) -> None:
        if self._http is not None:
            self._http.stop_accepting()
            await self._http.drained()
            self._http.abort()

    async def _drain_grpc(self, grace_s: float) -> None:
        if self._grpc is not None:
            await self._grpc.stop(grace_s)
