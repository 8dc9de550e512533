"""What clients without any rights can make a serving runtime hold or do; each is bounded in count and in time.

Every attack returns what it was answered, counted: HTTP statuses, gRPC calls that were ended, connections that were
still held at its end.
"""

import asyncio
import contextlib
import json
import os
import random
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.headers.blocks import encode

MODEL, WIDE, BOMB = "small", "wide", "bomb"

_GIVE_UP_S = 60.0
_LOOK_EVERY_S = 0.02
_INFER_PATH = b"/v2/models/small/infer"
_METHOD = b"/inference.GRPCInferenceService/ModelInfer"


def _call_headers(authority: str = "x") -> bytes:
    """Return the header block of an infer call."""
    return encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", _METHOD),
            (b":authority", authority.encode()),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        ]
    )


_WINDOW_BYTES = 60_000
"""Of one call: a little less than a client may send before the server widens its window."""


@dataclass(frozen=True)
class Target:
    """A runtime on this machine; it serves MODEL and WIDE, and may be asked to load BOMB."""

    http: int
    grpc: int


Answers: TypeAlias = Counter[str]
Attack: TypeAlias = Callable[[Target], Awaitable[Answers]]


def infer_head(length: int, *headers: str, model: str = MODEL) -> bytes:
    """Return the head of an infer request with a body of that length."""
    lines = "".join(f"{header}\r\n" for header in (f"Content-Length: {length}", *headers))
    return f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode()


async def unfinished_bodies(target: Target, *, clients: int, size_bytes: int, hold_s: float) -> Answers:
    """Send bodies that lack their last byte, and keep them so."""
    content = infer_head(size_bytes) + bytes(size_bytes - 1)
    return await _together([_send_and_hold(target.http, content, hold_s) for _ in range(clients)])


async def unfinished_heads(target: Target, *, clients: int, hold_s: float) -> Answers:
    """Begin requests over HTTP/1.1, and header blocks over HTTP/2, and go no further."""
    block = _call_headers()
    begun = frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0) + frames.frame(frames.HEADERS, 0, 1, block)
    plain = b"POST /v2 HTTP/1.1\r\nX: " + b"a" * 60_000
    return await _together(
        [_send_and_hold(target.http, plain, hold_s) for _ in range(clients)]
        + [_call_and_hold(target.grpc, begun, 1, hold_s) for _ in range(clients)]
    )


async def unfinished_calls(
    target: Target, *, connections: int, calls: int, hold_s: float, authority: str = "x"
) -> Answers:
    """Send calls over HTTP/2 that lack the end of their message, as much as each may without being asked."""
    prefix = b"\x00" + (2 * _WINDOW_BYTES).to_bytes(4, "big")
    pieces = [prefix + bytes(16_000 - len(prefix)), *[bytes(16_000)] * 2, bytes(_WINDOW_BYTES - 48_000)]
    content = [frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0)]
    block = _call_headers(authority)
    for number in range(1, 2 * calls, 2):
        content.append(frames.frame(frames.HEADERS, frames.END_HEADERS, number, block))
        content += [frames.frame(frames.DATA, 0, number, piece) for piece in pieces]
    whole = b"".join(content)
    return await _together([_call_and_hold(target.grpc, whole, calls, hold_s) for _ in range(connections)])


async def inflating_bodies(target: Target, *, clients: int, size_bytes: int) -> Answers:
    """Send JSON of very many numbers, which gzip makes very small."""
    numbers = size_bytes // 2
    begin = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"data":[' % numbers
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(begin) + packer.compress(b"0," * (numbers - 1) + b"0]}]}") + packer.flush()
    content = infer_head(len(body), "Content-Encoding: gzip") + body
    return await _together([_ask(target.http, content) for _ in range(clients)])


async def many_inputs(target: Target, *, inputs: int) -> Answers:
    """Send JSON of very many inputs."""
    item = b'{"name":"x","datatype":"FP32","shape":[1],"data":[1]}'
    body = b'{"inputs":[%s]}' % b",".join([item] * inputs)
    return Counter([await _ask(target.http, infer_head(len(body)) + body)])


async def nested_numbers(target: Target, *, rows: int) -> Answers:
    """Send JSON of rows of 100 numbers each to a model that takes any number of them."""
    row = b"[" + b",".join([b"0.5"] * 100) + b"]"
    begin = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,100],"data":[' % rows
    body = begin + b",".join([row] * rows) + b']}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}'
    return Counter([await _ask(target.http, infer_head(len(body), model=WIDE) + body)])


async def typed_contents(target: Target, *, numbers: int) -> Answers:
    """Send a message of very many numbers in typed contents, a byte each, over gRPC."""
    contents = b"\x12" + _varint(numbers) + b"\x01" * numbers
    shape = b"\x01" + _varint(numbers)
    tensor = b"\x0a\x01x\x12\x04INT8\x1a" + _varint(len(shape)) + shape + b"\x2a" + _varint(len(contents)) + contents
    return await _call(target, b"\x0a\x05small\x2a" + _varint(len(tensor)) + tensor)


async def many_fields(target: Target, *, fields: int) -> Answers:
    """Send a message of very many inputs, of two bytes each, over gRPC."""
    return await _call(target, b"\x0a\x05small" + b"\x2a\x00" * fields)


async def large_answer(target: Target, *, numbers: int, path: str = "infer", classes: int = 0) -> Answers:
    """Send numbers in binary and ask for an answer of them in JSON: three times as many bytes, or their classes.

    Args:
        numbers: how many, a multiple of 1024.
    """
    parameters = b',"outputs":[{"name":"y","parameters":{"classification":%d}}]' % classes if classes else b""
    shape = b'[{"name":"x","datatype":"FP32","shape":[1,%d],"parameters":{"binary_data_size":%d}}]'
    begin = b'{"inputs":' + shape % (numbers, 4 * numbers) + parameters + b"}"
    body = begin + random.Random(0).randbytes(4 * 1024).replace(b"\x7f", b"\x3f").replace(b"\xff", b"\x3f") * (
        numbers // 1024
    )
    head = infer_head(len(body), f"Inference-Header-Content-Length: {len(begin)}", model=WIDE)
    return Counter([await _ask(target.http, head.replace(b"/infer ", f"/{path} ".encode()) + body)])


async def shared_memory(target: Target, *, clients: int, size_bytes: int) -> Answers:
    """Have tensors read from shared memory and written there, which takes a request of few bytes."""
    with _region(size_bytes) as name:
        known = json.dumps({"key": name, "offset": 0, "byte_size": size_bytes}).encode()
        path = f"/v2/systemsharedmemory/region/{name}/register"
        registered = await _ask(target.http, infer_head(len(known)).replace(_INFER_PATH, path.encode()) + known)
        part = {"shared_memory_region": name, "shared_memory_byte_size": size_bytes}
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, size_bytes // 4], "parameters": part}
        body = json.dumps({"inputs": [tensor], "outputs": [{"name": "y", "parameters": part}]}).encode()
        content = infer_head(len(body), model=WIDE) + body
        answers = await _together([_ask(target.http, content) for _ in range(clients)])
        return answers if registered == "200" else Counter([f"{registered} of register"])


@contextlib.contextmanager
def _region(size_bytes: int) -> Iterator[str]:
    """Yield the name of a shared memory object, which is removed afterwards."""
    name = f"fairlead-flood-{os.getpid()}"
    path = Path("/dev/shm", name)
    try:
        with path.open("wb") as file:
            file.truncate(size_bytes)
        yield name
    finally:
        path.unlink(missing_ok=True)


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    found = bytearray()
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


async def _call(target: Target, message: bytes) -> Answers:
    """Return the status of a call with one message."""
    whole = b"\x00" + len(message).to_bytes(4, "big") + message
    reader, writer = await asyncio.open_connection("127.0.0.1", target.grpc)
    try:
        headers = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, _call_headers())
        writer.write(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0) + headers)
        return Counter([await asyncio.wait_for(_send_message(reader, writer, whole), _GIVE_UP_S)])
    finally:
        writer.close()


async def large_tensor(target: Target) -> Answers:
    """Have a model loaded whose file is small and whose first run is not."""
    request = f"POST /v2/repository/models/{BOMB}/load HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    return Counter([await _ask(target.http, request.encode())])


async def _together(attacks: Sequence[Coroutine[Any, Any, str]]) -> Answers:
    return Counter(await asyncio.gather(*attacks))


async def _ask(port: int, content: bytes) -> str:
    """Return the status that a request is answered with."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return "refused connection"
    try:
        writer.write(content)
        return await asyncio.wait_for(_status(reader), _GIVE_UP_S)
    except TimeoutError:
        return "no answer"
    finally:
        writer.transport.abort()


async def _status(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readline()
    except OSError:
        return "reset"
    return line.split()[1].decode("latin-1") if line else "closed"


async def _send_and_hold(port: int, content: bytes, hold_s: float) -> str:
    """Return the status that a server answers with before all was sent and held for a while."""
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:  # streams would copy what they cannot send, again and again
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            await loop.sock_connect(sock, ("127.0.0.1", port))
        except OSError:
            return "refused connection"
        answer = asyncio.create_task(loop.sock_recv(sock, 4096))
        sending = asyncio.create_task(loop.sock_sendall(sock, content))
        await asyncio.wait((answer, sending), timeout=_GIVE_UP_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((answer,), timeout=hold_s)
        found = answer.done()
        for task in (answer, sending):
            task.cancel()
        outcome, _ = await asyncio.gather(answer, sending, return_exceptions=True)
    if not found:
        return "held"
    return outcome.split()[1].decode("latin-1") if isinstance(outcome, bytes) and outcome else "closed"


async def _drained(writer: asyncio.StreamWriter, content: bytes) -> None:
    with contextlib.suppress(OSError):
        writer.write(content)
        await writer.drain()


async def _call_and_hold(port: int, content: bytes, calls: int, hold_s: float) -> str:
    """Return how many of the calls of one connection were ended by the server, as a share in words."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return "refused connection"
    ended: set[int] = set()
    sending = asyncio.create_task(_drained(writer, content))
    try:
        async with asyncio.timeout(hold_s):
            while True:
                kind, stream_id, _ = await _frame(reader)
                if kind in (frames.HEADERS, frames.RST_STREAM):
                    ended.add(stream_id)
                if kind == frames.GOAWAY:
                    return "closed"
    except TimeoutError:
        return "held" if len(ended) < calls else "all calls ended"
    except (OSError, asyncio.IncompleteReadError):
        return "closed"
    finally:
        sending.cancel()
        writer.transport.abort()


async def _send_message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, content: bytes) -> str:
    """Send a message as the windows let it, and return the call's grpc-status."""
    windows = {0: frames.DEFAULT_WINDOW_BYTES, 1: frames.DEFAULT_WINDOW_BYTES}
    at = 0
    while True:
        room = min(*windows.values(), frames.SMALLEST_MAX_FRAME_BYTES, len(content) - at)
        if room > 0:
            last = at + room == len(content)
            writer.write(frames.frame(frames.DATA, frames.END_STREAM if last else 0, 1, content[at : at + room]))
            at += room
            windows = {number: left - room for number, left in windows.items()}
            continue
        await writer.drain()
        try:
            kind, stream_id, payload = await _frame(reader)
        except (OSError, asyncio.IncompleteReadError):
            return "closed"
        if kind == frames.WINDOW_UPDATE:
            windows[stream_id] += int.from_bytes(payload, "big")
        elif kind == frames.HEADERS:
            found = payload.partition(b"grpc-status")[2]
            return f"grpc-status {found[1 : 1 + found[0]].decode()}" if found else "answered"
        elif kind in (frames.RST_STREAM, frames.GOAWAY):
            return "reset"


async def _frame(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    high, low, kind, _, stream_id = frames.HEAD.unpack(await reader.readexactly(frames.HEAD_BYTES))
    return kind, stream_id, await reader.readexactly(high << 16 | low)
