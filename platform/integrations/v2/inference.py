"""V2 inference client: sends one request to a service at its gateway, for trying a model on a page.

The caller passes a service's own address, never one that a user typed. Neither request nor answer is logged.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from common.errors import TooLarge, Unavailable
from integrations.otlp.tracing import of_process
from integrations.trust import trust
from integrations.v2.tensors import MOST_BYTES


@dataclass(frozen=True, slots=True)
class Answered:
    """The response: `revision` is the one that served it, empty where the gateway does not name it."""

    status: int
    body: bytes
    took_ms: float
    revision: str


def infer(url: str, body: bytes, *, within_s: float, token: str = "", socket: Path | None = None) -> Answered:
    """Return the answer of the model at `url`, with any status.

    Args:
        token: sent to the gateway, which takes it out of the request; empty where anybody may call.
        socket: a Unix socket at which the gateway takes the request without TLS; None connects to the URL's host.

    Raises:
        Unavailable: no complete answer came within `within_s` seconds.
        TooLarge: the answer is larger than the read limit.
    """
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    late = f"no answer came within {within_s:g} s; send less, or ask the model by itself with the code below"
    transport = httpx.HTTPTransport(verify=trust(), uds=None if socket is None else str(socket))
    target = url if socket is None else f"http://{url.partition('://')[2]}"
    try:
        with httpx.Client(timeout=within_s, trust_env=False, follow_redirects=False, transport=transport) as client:
            begun = time.monotonic()
            headers |= of_process.headers()
            with client.stream("POST", target, content=body, headers=headers) as answer:
                content = bytearray()
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise TooLarge(f"the answer has more than the {MOST_BYTES} bytes that are read of one")
                    if time.monotonic() - begun > within_s:
                        raise Unavailable(late)
                took_ms = (time.monotonic() - begun) * 1000
                revision = answer.headers.get("fairlead-revision", "")
                return Answered(answer.status_code, bytes(content), took_ms, revision)
    except httpx.TimeoutException as error:
        raise Unavailable(late) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"the gateway at {url} did not answer: {error or type(error).__name__}") from error
