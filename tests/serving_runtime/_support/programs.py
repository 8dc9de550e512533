"""Programs on a proxy: real processes of the standard library's making, and the proxy that starts them."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

MODEL = "digits"
PATIENCE_S = 60.0
NAMES = ("http", "grpc", "metrics")

PROGRAM = '''
import http.server, json, os, signal, socket, sys, threading, time, urllib.request

MODE = os.environ.get("MODE", "")
if MODE == "exits":
    print("no weights here", flush=True)
    sys.exit(3)
if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"pid-of-{os.environ['ROLE']}", "w").write(str(os.getpid()))


def sockets():
    """Return how many sockets this process has."""
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.path.lexists(link) and os.readlink(link).startswith("socket:") for link in links)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/about":
            about = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "sockets": sockets()}
            self.answer(200, about)
        else:
            self.answer(503 if MODE == "never ready" else 200, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b"slow":
            open("arrived", "w").close()
            while not os.path.exists("go-on"):
                time.sleep(0.005)
        if body == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        seen = {"role": os.environ["ROLE"], "path": self.path, "body": body.decode()}
        host = os.environ.get("PREDICTOR_HOST")
        if host and body != b"alone":
            called = os.environ.get("CALLS", self.path)
            request = urllib.request.Request(f"http://{host}{called}", body, dict(self.headers))
            with urllib.request.urlopen(request) as answer:
                seen["behind"] = json.load(answer)
        self.answer(200, seen)

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("fairlead-rows", "1000000")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args): ...


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = False  # as servers that do not set it


def echo(connection):
    """Speak first, then send everything back in upper case."""
    connection.sendall(b"hello from gRPC ")
    while received := connection.recv(65536):
        connection.sendall(received.upper())
    connection.close()


def relayed():
    with socket.create_server(("127.0.0.1", int(os.environ["GRPC_PORT"]))) as sock:
        while True:
            threading.Thread(target=echo, args=(sock.accept()[0],), daemon=True).start()


if os.environ.get("GRPC") == "echo":
    threading.Thread(target=relayed, daemon=True).start()
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
'''


def program(folder: Path, role: str, mode: str = "", *words: str, **env: str) -> dict[str, Any]:
    """Return the entry of a program that answers each POST with what it has seen."""
    (folder / "program.py").write_text(PROGRAM)
    variables = {"ROLE": role, "MODE": mode, "PATH": os.environ["PATH"], **env}
    return {"command": [sys.executable, "-S", "program.py", *words], "folder": str(folder), "env": variables}


class Answer(NamedTuple):
    """An answer; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class OverSocket(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(str(self._path))


class Replica:
    """A proxy with programs, on Unix sockets that it has inherited, or on ports of 127.0.0.1.

    Attributes:
        file: the programs' file, which the proxy removes.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: Path, file: Path, log: Path) -> None:
        self.process = process
        self.file = file
        self.folder = folder
        self._log = log

    def ask(self, method: str, path: str, body: bytes | None = None, endpoint: str = "http") -> Answer:
        with closing(self._connection(endpoint)) as connection:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def _connection(self, endpoint: str) -> http.client.HTTPConnection:
        at = self.place(endpoint)
        return OverSocket(at) if isinstance(at, Path) else http.client.HTTPConnection("127.0.0.1", at, PATIENCE_S)

    def place(self, endpoint: str) -> Path | int:
        """Return the socket or the port of an endpoint; raises FileNotFoundError before the proxy listens on ports."""
        if (self.folder / endpoint).is_socket():
            return self.folder / endpoint
        return int(json.loads((self.folder / "ports").read_text())[endpoint])

    def infer(self, body: bytes) -> Answer:
        return self.ask("POST", f"/v2/models/{MODEL}/infer", body)

    def until_ready(self) -> None:
        until(lambda: self.process.poll() is not None or self.is_ready(), self.said)
        assert self.process.poll() is None, self.said()

    def is_ready(self) -> bool:
        try:
            return self.ask("GET", "/v2/health/ready").status == 200
        except OSError:
            return False

    def sockets(self) -> int:
        """Return how many sockets the proxy has."""
        files = Path(f"/proc/{self.process.pid}/fd")
        return sum(str(file.readlink()).startswith("socket:") for file in files.iterdir() if file.is_symlink())

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ended(self) -> int:
        """Return the exit code."""
        return self.process.wait(PATIENCE_S)

    def said(self) -> str:
        return self._log.read_text()


@contextmanager
def replica(folder: Path, programs: dict[str, Any], *flags: str, on_ports: bool = False) -> Iterator[Replica]:
    """Run the command until the block ends, on bound Unix sockets in the folder or on free ports."""
    file, log = folder / "programs.json", folder / "log"
    file.write_text(json.dumps(programs))
    sockets = [] if on_ports else [bound(folder / name) for name in NAMES]
    if on_ports:
        places = [flag for name in NAMES for flag in (f"--{name}-address=127.0.0.1", f"--{name}-port=0")]
    else:
        places = [f"--{name}-address=fd:{sock.fileno()}" for name, sock in zip(NAMES, sockets, strict=True)]
    places.append(f"--port_file={folder / 'ports'}")
    command = [sys.executable, "-m", "serving_runtime", "proxy", f"--programs={file}", f"--model_name={MODEL}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *places, *flags],
            stdout=output,
            stderr=output,
            text=True,
            pass_fds=[sock.fileno() for sock in sockets],
        )
    for sock in sockets:
        sock.close()
    try:
        yield Replica(process, folder, file, log)
    finally:
        process.kill()
        process.wait()


def bound(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    return sock


def until(condition: Callable[[], bool], said: Callable[[], str] = str) -> None:
    """Wait until a condition of other processes holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.01)


def pids(folder: Path, roles: Sequence[str]) -> list[int]:
    """Return the processes of programs, once they have begun."""
    files = [folder / f"pid-of-{role}" for role in roles]
    until(lambda: all(file.exists() and file.read_text() for file in files))
    return [int(file.read_text()) for file in files]


def is_gone(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
