"""Steady requests to many services, each answered or noted as failed."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from fairlead_cli.demo.story import NAMESPACE

_EVERY_S = 0.5
_TIMEOUT_S, _ANSWERS_S = 30.0, 60.0
BODY = {
    "inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": [0.5] * 64}],
    "outputs": [{"name": "label"}],
}


class Traffic:
    """Requests from one thread, two a second to each service."""

    def __init__(self, gateway: str, services: Sequence[str]) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self._gateway = gateway
        self._services = services
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="requests")

    def until_all_answer(self) -> None:
        """Wait until each service has answered once; raises TimeoutError."""
        deadline = time.monotonic() + _ANSWERS_S
        while len(self._seen) < len(self._services):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self._seen)} of {len(self._services)} services answered: {self.failed[:3]}")
            time.sleep(0.1)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Finish what was asked."""
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=len(self._services))
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, limits=limits, trust_env=False) as client:
            await asyncio.gather(*(self._ask(client, index, name) for index, name in enumerate(self._services)))

    async def _ask(self, client: httpx.AsyncClient, index: int, service: str) -> None:
        url = f"http://{self._gateway}/serving/{NAMESPACE}/{service}/v2/models/{service}/infer"
        await asyncio.sleep(_EVERY_S * index / len(self._services))
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                answer = await client.post(url, json=BODY)
                answer.raise_for_status()
                self.answered += 1
                self._seen.add(service)
            except httpx.HTTPStatusError as error:
                self.failed.append(f"{service}: {error.response.status_code} {error.response.text[:200]}")
            except httpx.HTTPError as error:
                self.failed.append(f"{service}: {type(error).__name__} {error}")
            await asyncio.sleep(max(0.0, began + _EVERY_S - time.monotonic()))


@contextmanager
def traffic(gateway: str, services: Sequence[str]) -> Iterator[Traffic]:
    """Send requests until the end of the block."""
    sent = Traffic(gateway, services)
    sent.start()
    try:
        yield sent
    finally:
        sent.end()
