"""What listens on the ports, made from the command line."""

import socket

from serving_runtime.engine.engine import Engine
from serving_runtime.protocol.grpc.access import HEADER_PREFIX
from serving_runtime.protocol.grpc.handlers import CallPolicy
from serving_runtime.protocol.grpc.health import HealthService
from serving_runtime.protocol.grpc.memory import MemoryService
from serving_runtime.protocol.grpc.server import GrpcLimits, GrpcServer
from serving_runtime.protocol.grpc.service import V2Service
from serving_runtime.protocol.http import logged
from serving_runtime.protocol.http.limits import HttpLimits
from serving_runtime.protocol.http.listener import Listener
from serving_runtime.protocol.http.metrics import MetricsApplication
from serving_runtime.protocol.http.reader import either
from serving_runtime.protocol.http.v2 import V2Application
from serving_runtime.protocol.restrictions import Restrictions
from serving_runtime.server.options import Options


def http_listener(options: Options, engine: Engine, sock: socket.socket) -> Listener:
    limits = HttpLimits(max_body_bytes=options.http.max_input_bytes)
    v2 = V2Application(
        engine,
        restrictions=Restrictions(options.http.restrictions),
        forwarded=options.http.header_forward_pattern,
        with_context=options.wants_context,
    )
    if not options.log_verbose:
        return Listener(v2, sock, limits, v2.keeps_header)
    return Listener(logged.LoggedApplication(v2), sock, limits, either(v2.keeps_header, logged.keeps_header))


def metrics_listener(engine: Engine, sock: socket.socket) -> Listener:
    return Listener(MetricsApplication(engine), sock, HttpLimits())


def grpc_server(options: Options, engine: Engine) -> GrpcServer:
    policy = CallPolicy(
        logs=options.log_verbose > 0,
        with_context=options.wants_context,
        restrictions=Restrictions(options.grpc.restrictions, HEADER_PREFIX),
        forwarded=options.grpc.header_forward_pattern,
    )
    return GrpcServer(
        [V2Service(engine), MemoryService(engine.shared_memory), HealthService(engine)],
        GrpcLimits(max_message_bytes=options.http.max_input_bytes),
        policy,
    )
