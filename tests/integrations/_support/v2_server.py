"""A small V2 server with the runtime's command line, for tests that need a replica to misbehave on demand.

It reads its model's files only to say who it is. A request tells it what to do by the header `x-do`:
`sleep=SECONDS`, `status=NNN` (for gRPC the status code's number). The environment tells it what to do at its start:
`MODEL_START=fail` tells its variables that begin with `MODEL_` and ends with exit code 3, `MODEL_START=never-ready`
never becomes ready; and `MODEL_DO` what to do with every infer request whatever its header says, also `crash`.
`GET /calls` lists the infer calls it got, and requests with OPTIONS, which it refuses. `x-rows` is what its answer says
in `fairlead-rows`.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import grpc

STARTED_AT = time.time()
INFER = "/inference.GRPCInferenceService/ModelInfer"


class Server:
    def __init__(self, repository: Path, revision: str) -> None:
        self.told = (("fairlead-revision", revision),) if revision else ()
        self.model = next(path for path in repository.iterdir() if path.is_dir())
        self.version = next(path.name for path in self.model.iterdir() if path.name.isdecimal())
        self.ready = os.environ.get("MODEL_START") != "never-ready"
        self.inflight = self.succeeded = self.failed = 0
        self.calls: list[dict[str, str]] = []
        self.idle = asyncio.Event()
        self.idle.set()

    def page(self) -> str:
        labels = f'model="{self.model.name}",version="{self.version}"'
        count = self.succeeded + self.failed
        return "\n".join(
            [
                f"process_start_time_seconds {STARTED_AT}",
                f"nv_inference_request_success{{{labels}}} {self.succeeded}",
                f'nv_inference_request_failure{{{labels},reason="BACKEND"}} {self.failed}',
                f'fairlead_inference_request_duration_us_bucket{{{labels},le="1000"}} {count}',
                f'fairlead_inference_request_duration_us_bucket{{{labels},le="+Inf"}} {count}',
                f"fairlead_inflight_requests{{{labels}}} {self.inflight}",
                "",
            ]
        )

    async def infer(self, do: str) -> int:
        self.inflight += 1
        self.idle.clear()
        try:
            action, _, value = os.environ.get("MODEL_DO", do).partition("=")
            if action == "crash":
                os._exit(9)
            if action == "sleep":
                await asyncio.sleep(float(value))
            status = int(value) if action == "status" else 0
            if status:
                self.failed += 1
            else:
                self.succeeded += 1
            return status
        finally:
            self.inflight -= 1
            if not self.inflight:
                self.idle.set()

    async def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        body = json.dumps(
            {"path": path, "model": self.model.name, "version": self.version, "method": method, "headers": headers}
        )
        if path == "/calls":
            return 200, json.dumps(self.calls)
        if path == "/metrics":
            return 200, self.page()
        if path == "/v2/health/ready":
            return (200 if self.ready else 503), body
        if method == "OPTIONS":
            self.calls.append({"protocol": "http", "method": method, "path": path, **headers})
            return 405, body
        if path.endswith("/infer"):
            self.calls.append({"protocol": "http", "path": path, **headers})
            return (await self.infer(headers.get("x-do", ""))) or 200, body
        return 200, body

    async def serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines[1:] if line)
                }
                left = int(headers.get("content-length", "0"))
                while left:
                    left -= len(await reader.read(min(left, 1 << 16)))
                status, body = await self.answer(method, path, headers)
                payload = body.encode()
                told = "".join(f"{name}: {value}\r\n" for name, value in (*self.told, *rows_of(headers)))
                writer.write(f"HTTP/1.1 {status} X\r\n{told}content-length: {len(payload)}\r\n\r\n".encode())
                writer.write(b"" if method == "HEAD" else payload)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def model_infer(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        self.calls.append({"protocol": "grpc", **{name: str(value) for name, value in metadata.items()}})
        status = await self.infer(str(metadata.get("x-do", "")))
        if status:
            code = next(code for code in grpc.StatusCode if code.value[0] == status)
            await context.abort(code, "as asked", trailing_metadata=self.told)
        await context.send_initial_metadata(self.told)
        context.set_trailing_metadata(rows_of(metadata))
        return request

    async def grpc_meta(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return b""


def rows_of(headers: Mapping[str, str | bytes]) -> tuple[tuple[str, str | bytes], ...]:
    return (("fairlead-rows", headers["x-rows"]),) if "x-rows" in headers else ()


class Methods(grpc.GenericRpcHandler):
    def __init__(self, server: Server) -> None:
        self.server = server

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        handler = self.server.model_infer if call.method == INFER else self.server.grpc_meta
        return grpc.unary_unary_rpc_method_handler(handler)


def write_ports(path: str, ports: dict[str, int]) -> None:
    new = Path(path + ".new")
    new.write_text(json.dumps(ports))
    new.rename(path)


async def main() -> int:
    parser = argparse.ArgumentParser()
    for name in (
        "model-repository",
        "exit-timeout-secs",
        "revision",
        "port-file",
        "payload-tap",
        "payload-tap-share-file",
        "payload-tap-max-file-bytes",
        "payload-tap-max-pending-bytes",
        "payload-tap-token-file",
        "payload-tap-ca-file",
        "payload-logger",
        "payload-logger-mode",
        "payload-logger-attribute",
        "payload-logger-allowed-networks",
    ):
        parser.add_argument(f"--{name}")
    for name in ("http-address", "grpc-address", "metrics-address"):
        parser.add_argument(f"--{name}", default="127.0.0.1")
    for name in ("http-port", "grpc-port", "metrics-port"):
        parser.add_argument(f"--{name}", type=int, default=0)
    options = parser.parse_args()
    if os.environ.get("MODEL_START") == "fail":
        told = {name: value for name, value in os.environ.items() if name.startswith("MODEL_")}
        sys.stderr.write(f"the environment is {told}\ncannot load the model: as asked\n")
        return 3
    server = Server(Path(options.model_repository), options.revision)
    host = options.http_address
    http = await asyncio.start_server(server.serve_http, host, options.http_port)
    if options.metrics_port:
        await asyncio.start_server(server.serve_http, host, options.metrics_port)
    rpc = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    rpc.add_generic_rpc_handlers((Methods(server),))
    grpc_port = rpc.add_insecure_port(f"{host}:{options.grpc_port}")
    await rpc.start()
    http_port = http.sockets[0].getsockname()[1]
    if options.port_file:
        write_ports(options.port_file, {"http": http_port, "grpc": grpc_port, "metrics": http_port})
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.ready = False
    await server.idle.wait()
    await rpc.stop(5)
    http.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
