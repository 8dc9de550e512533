"""Endpoints: HTTP, gRPC and metrics servers, made from the command line."""

import asyncio
import functools
import itertools
import logging
import socket
import ssl
from collections.abc import Callable

from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools.source import ModelPool
from serving_runtime.protocol import revision
from serving_runtime.protocol.caller_limit import UnansweredRequests
from serving_runtime.protocol.grpc.access import HEADER_PREFIX
from serving_runtime.protocol.grpc.methods import Service
from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
from serving_runtime.protocol.grpc.policy import CallPolicy
from serving_runtime.protocol.grpc.services import reflection
from serving_runtime.protocol.grpc.services.health import HealthService
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.grpc.services.pool import PoolServices
from serving_runtime.protocol.grpc.services.reflection import ReflectionService
from serving_runtime.protocol.grpc.services.settings import SettingsService
from serving_runtime.protocol.grpc.services.shared_memory import MemoryService
from serving_runtime.protocol.http.api import metrics
from serving_runtime.protocol.http.api.pool import PoolApplication
from serving_runtime.protocol.http.api.pool import keeps_header as keeps_version
from serving_runtime.protocol.http.api.pool_admin import PoolAdmin
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.codec import json_floats
from serving_runtime.protocol.http.wire import access_log
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http.wire.message import Application
from serving_runtime.protocol.http.wire.reader import KeepsHeader, either
from serving_runtime.protocol.request_memory import RequestMemory
from serving_runtime.protocol.restrictions import Restrictions
from serving_runtime.protocol.settings import RuntimeSettings
from serving_runtime.server.flags.command_line import Options
from serving_runtime.server.flags.grpc import H2
from serving_runtime.server.flags.metrics import MetricsOptions
from serving_runtime.telemetry.metrics.cpu import CpuMeter
from serving_runtime.telemetry.metrics.gpus import GpuMeter
from serving_runtime.telemetry.tap.taps import Taps

logger = logging.getLogger(__name__)


def http_listener(
    options: Options,
    engine: Engine,
    settings: RuntimeSettings,
    sock: socket.socket,
    taps: Taps,
    *,
    memory: RequestMemory,
    unanswered: UnansweredRequests,
    secured: ssl.SSLContext | None = None,
    pool: ModelPool | None = None,
) -> Listener:
    json_floats.compiler.allowed &= options.http.compiled_json
    limits = HttpLimits(max_body_bytes=options.http.max_input_bytes)
    v2 = V2Application(
        engine,
        restrictions=Restrictions(options.http.restrictions, closed=options.closed_groups),
        forwarded=options.http.header_forward_pattern,
        with_context=_wants_context(options, taps),
        settings=settings,
    )

    served: Application = v2 if pool is None else PoolApplication(v2, engine, pool)

    def application() -> tuple[Application, KeepsHeader | None]:
        """Return the application, with access log where the settings enable it, else unwrapped."""
        kept = v2.keeps_header if pool is None else either(v2.keeps_header, keeps_version)
        if not settings.log.verbose:
            return served, kept
        return access_log.LoggedApplication(served), either(kept, access_log.keeps_header)

    found, keeps_header = application()
    own_headers = revision.header_line(options.revision)
    listener = Listener(
        found,
        sock,
        limits,
        keeps_header,
        own_headers=own_headers,
        memory=memory,
        unanswered=unanswered,
        secured=secured,
    )
    settings.log.on_change.append(lambda: listener.change(*application()))

    def follow() -> None:
        v2.with_context = _wants_context(options, taps)
        listener.change(*application())

    taps.on_change(follow)
    return listener


def _wants_context(options: Options, taps: Taps) -> bool:
    """Return whether a recorder or tracer currently needs request ids or traces."""
    return options.exports_traces or taps.active


def metrics_listener(
    options: MetricsOptions,
    engine: Engine,
    sock: socket.socket,
    taps: Taps,
    *,
    memory: RequestMemory,
    pool: ModelPool | None = None,
) -> Listener:
    cpu = None
    if options.cpu:
        meter = CpuMeter()
        again_and_again(meter.look, options.interval_ms / 1000)
        cpu = meter.current
    gpus = GpuMeter()
    if options.gpu:
        loop = asyncio.get_running_loop()

        def look() -> None:
            loop.run_in_executor(None, gpus.look)

        look()
        again_and_again(look, options.interval_ms / 1000)
    more = (taps, gpus) if pool is None else (taps, gpus, pool)
    application: Application = metrics.MetricsApplication(
        engine, options.settings, cpu, lambda: itertools.chain.from_iterable(part.families() for part in more)
    )
    if pool is not None:
        application = PoolAdmin(application, pool)
    return Listener(application, sock, HttpLimits(), metrics.keeps_header, memory=memory)


def again_and_again(look: Callable[[], None], interval_s: float) -> None:
    """Call `look` at intervals until the loop ends."""

    def turn() -> None:
        look()
        loop.call_later(interval_s, turn)

    loop = asyncio.get_running_loop()
    loop.call_later(interval_s, turn)


def grpc_server(
    options: Options,
    engine: Engine,
    settings: RuntimeSettings,
    taps: Taps,
    *,
    memory: RequestMemory,
    unanswered: UnansweredRequests,
    pool: ModelPool | None = None,
) -> Http2GrpcServer:
    """Return the server; raises ValueError, naming the flag, for invalid certificates."""
    policy = CallPolicy(
        context_wanted=functools.partial(_wants_context, options, taps) if options.exports_traces or taps else None,
        restrictions=Restrictions(options.grpc.restrictions, HEADER_PREFIX, closed=options.closed_groups),
        forwarded=options.grpc.header_forward_pattern,
        answer_metadata=revision.metadata(options.revision),
    )
    pooled = PoolServices(engine, pool, memory) if pool is not None else None
    services: list[Service] = [
        V2Service(engine, memory),
        MemoryService(engine.shared_memory),
        SettingsService(engine, settings),
        HealthService(engine),
    ]
    names = {service.name for service in services}
    if pooled is not None:
        services = [pooled, HealthService(engine)]
    services += [ReflectionService(version, names | reflection.NAMES) for version in reflection.VERSIONS]
    if options.grpc.server != H2:
        logger.warning("--grpc-server=%s has no effect: gRPC is served by %s; leave it out", options.grpc.server, H2)
    scope = pooled.of if pooled is not None else None
    return Http2GrpcServer(services, options.grpc.settings, policy, memory, unanswered, scope=scope)
