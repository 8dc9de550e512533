"""A closed loop of messages on one ModelStreamInfer call, by a socket alone: quicker than any server that it asks.

    python streamed.py PORT MESSAGE_FILE IN_FLIGHT SECONDS

Prints how many messages were answered. Every answer has to fit into one frame.
"""

import socket
import sys
import time
from pathlib import Path

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.headers.blocks import encode

_PATH = b"/inference.GRPCInferenceService/ModelStreamInfer"
_FIELDS = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", _PATH),
    (b":authority", b"127.0.0.1"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
)
_ENDS = (frames.RST_STREAM, frames.GOAWAY)
_STREAM = 1
_MOST_BYTES = 2**30


def answered(port: int, message: bytes, in_flight: int, seconds: float) -> int:
    """Return how many messages were answered.

    Args:
        message: a ModelInferRequest with its prefix, which fits into a frame.
    """
    data = frames.frame(frames.DATA, 0, _STREAM, message)
    count, window, waiting = 0, frames.DEFAULT_WINDOW_BYTES, in_flight
    rest, end = b"", time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(
            frames.PREFACE
            + frames.settings({frames.INITIAL_WINDOW_SIZE: _MOST_BYTES})
            + frames.window_update(0, _MOST_BYTES)
            + frames.frame(frames.HEADERS, frames.END_HEADERS, _STREAM, encode(_FIELDS))
        )
        while time.monotonic() < end:
            sent = min(waiting, window // len(message))
            if sent:
                connection.sendall(data * sent)
                waiting, window = waiting - sent, window - sent * len(message)
            received = rest + connection.recv(1 << 18)
            at = 0
            while len(received) - at >= frames.HEAD_BYTES:
                high, low, kind, flags, stream = frames.HEAD.unpack_from(received, at)
                after = at + frames.HEAD_BYTES + (high << 16 | low)
                if after > len(received):
                    break
                if kind == frames.DATA:
                    count, waiting = count + 1, waiting + 1
                elif kind == frames.WINDOW_UPDATE and stream:
                    window += int.from_bytes(received[at + frames.HEAD_BYTES : after], "big")
                elif kind in _ENDS or (kind == frames.HEADERS and flags & frames.END_STREAM):
                    raise RuntimeError(f"the call was ended: {received[at:after]!r}")
                at = after
            rest = received[at:]
    return count


if __name__ == "__main__":
    print(answered(int(sys.argv[1]), Path(sys.argv[2]).read_bytes(), int(sys.argv[3]), float(sys.argv[4])))
