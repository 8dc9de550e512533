"""A command that runs in a container for `kubectl exec`, which talks to a kubelet by WebSocket (RFC 6455).

The subprotocol is Kubernetes' `v5.channel.k8s.io`: the first byte of a message says which stream the rest is of, and a
client says by a message of 255 that a stream has ended. A node takes it that declares `FEATURE`.
"""

import base64
import hashlib
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from subprocess import Popen
from typing import IO, BinaryIO

FEATURE = "ExtendWebSocketsToKubelet"
PROTOCOL = "v5.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR, _ENDED = 0, 1, 2, 3, 255
_CONTINUED, _BINARY, _CLOSE, _PING, _PONG = 0, 2, 8, 9, 10
_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_CHUNK = 1 << 15


def serve(asked: BaseHTTPRequestHandler, process: "Popen[bytes]", *, takes_input: bool) -> None:
    """Pass bytes between the client and a process that has just started, to its end."""
    assert PROTOCOL in asked.headers["Sec-WebSocket-Protocol"].replace(",", " ").split()
    asked.send_response(HTTPStatus.SWITCHING_PROTOCOLS)
    accepted = hashlib.sha1(asked.headers["Sec-WebSocket-Key"].encode() + _KEY).digest()
    for name, value in (
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", base64.b64encode(accepted).decode()),
        ("Sec-WebSocket-Protocol", PROTOCOL),
    ):
        asked.send_header(name, value)
    asked.end_headers()
    asked.wfile.flush()
    asked.close_connection = True
    assert process.stdin is not None
    if not takes_input:
        process.stdin.close()
    connection = _Connection(asked.rfile, asked.wfile)
    pumps = [
        threading.Thread(target=_pump, args=(connection, number, stream))
        for number, stream in ((_STDOUT, process.stdout), (_STDERR, process.stderr))
    ]
    ending = threading.Thread(target=_end, args=(connection, process, pumps))
    for thread in (*pumps, ending):
        thread.start()
    with suppress(OSError):  # the client left
        for number, content in connection.messages():
            with suppress(OSError):  # the process closed its input, or has ended
                if number == _STDIN:
                    process.stdin.write(content)
                    process.stdin.flush()
                elif (number, content) == (_ENDED, bytes([_STDIN])):
                    process.stdin.close()
    if process.poll() is None:
        process.kill()
    ending.join()


def _pump(connection: "_Connection", number: int, stream: IO[bytes] | None) -> None:
    assert stream is not None
    with stream, suppress(OSError):
        while content := stream.read1(_CHUNK):  # type: ignore[attr-defined] # pipes are buffered readers
            connection.send(_BINARY, bytes([number]) + content)


def _end(connection: "_Connection", process: "Popen[bytes]", pumps: list[threading.Thread]) -> None:
    code = process.wait()
    for pump in pumps:
        pump.join()
    status: dict[str, object] = {"metadata": {}, "status": "Success"}
    if code:
        message = f"command terminated with non-zero exit code: exit status {code}"
        details = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
        status |= {"status": "Failure", "reason": "NonZeroExitCode", "message": message, "details": details}
    with suppress(OSError):
        connection.send(_BINARY, bytes([_ERROR]) + json.dumps(status).encode())
        connection.send(_CLOSE, struct.pack("!H", 1000))


class _Connection:
    """The frames of a WebSocket, seen from the server."""

    def __init__(self, incoming: IO[bytes], outgoing: BinaryIO | IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._lock = threading.Lock()

    def send(self, opcode: int, content: bytes) -> None:
        """Send one frame, which is all of a message."""
        size = len(content)
        length = bytes([size]) if size < 126 else struct.pack("!BH", 126, size)
        with self._lock:
            self._outgoing.write(bytes([0x80 | opcode]) + length + content)
            self._outgoing.flush()

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """Yield stream and content of each message until the client closes."""
        message = b""
        while head := self._incoming.read(2):
            opcode, is_last = head[0] & 0x0F, head[0] & 0x80
            content = self._content(head[1] & 0x7F)
            if opcode == _CLOSE:
                return
            if opcode == _PING:
                self.send(_PONG, content)
            elif opcode in (_BINARY, _CONTINUED):
                message += content
                if is_last:
                    yield message[0], message[1:]
                    message = b""

    def _content(self, size: int) -> bytes:
        if size == 126:
            (size,) = struct.unpack("!H", self._incoming.read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._incoming.read(8))
        mask = self._incoming.read(4)
        content = self._incoming.read(size)
        repeated = (mask * (size // 4 + 1))[:size]
        return (int.from_bytes(content) ^ int.from_bytes(repeated)).to_bytes(size)
