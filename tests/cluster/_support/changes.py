"""Says when something changed on an API server, by watches: a stand-in looks then, and rests else."""

import socket
import threading
from contextlib import suppress

import httpx

from tests.cluster.plane import ControlPlane

_AGAIN_S = 0.25
"""How long after a watch broke it is tried again: the API server may be away."""


class Changes:
    """Counts what changes below some paths of an API server, among them all that is there at the start."""

    def __init__(self, plane: ControlPlane, *paths: str, selector: str = "") -> None:
        self._client = plane.client()
        self._query = {"watch": "true", **({"fieldSelector": selector} if selector else {})}
        self._watches = [threading.Thread(target=self._watch, args=(path,), name=f"watch-{path}") for path in paths]
        self._open: dict[str, httpx.Response] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._woken = threading.Event()
        self.count = 0

    def start(self) -> None:
        """Begin to watch."""
        for each in self._watches:
            each.start()

    def wait(self, most_s: float) -> None:
        """Return when something changed since the last call, or woke this one, or so many seconds passed."""
        self._woken.wait(most_s)
        self._woken.clear()

    def wake(self) -> None:
        """Let who waits look, for another reason than a change."""
        self._woken.set()

    def close(self) -> None:
        """End all watches."""
        self._closing.set()
        self.wake()
        with self._lock:
            answers = list(self._open.values())
        for answer in answers:
            stream = answer.extensions["network_stream"].get_extra_info("socket")
            with suppress(OSError):  # it broke meanwhile
                stream.shutdown(socket.SHUT_RDWR)
        for each in self._watches:
            if each.is_alive():
                each.join()
        self._client.close()

    def _watch(self, path: str) -> None:
        while not self._closing.is_set():
            with suppress(httpx.HTTPError):
                self._follow(path)
            self._changed()  # nobody saw what happened without a watch
            self._closing.wait(_AGAIN_S)

    def _follow(self, path: str) -> None:
        """Count the changes below one path until its watch breaks."""
        with self._client.stream("GET", path, params=self._query, timeout=httpx.Timeout(10, read=None)) as answer:
            answer.raise_for_status()
            with self._lock:
                self._open[path] = answer
            if self._closing.is_set():
                return
            for _ in answer.iter_raw():
                self._changed()

    def _changed(self) -> None:
        self.count += 1
        self._woken.set()
