"""The end of a silent stream, and one that breaks, on an API server of a few lines."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from integrations.clusters.kubernetes.access import KubeconfigFile
from integrations.clusters.kubernetes.api import watching
from integrations.clusters.kubernetes.watches import Cache, Watcher
from integrations.clusters.kubernetes.watches.watcher import WATCHED
from tests.integrations._support.api_servers import Handler, api_server

_WITHIN_S = 30.0
_LOGGER = "integrations.clusters.kubernetes.watches.watcher"


class SilentServer:
    """Has no objects and sends no event. Streams last until `over`; then they end or break.

    Attributes:
        streams: how many were opened, by the path of their kind.
        limits: the `timeoutSeconds` of all streams.
    """

    def __init__(self) -> None:
        self.streams: Counter[str] = Counter()
        self.limits: list[float] = []
        self.over, self.closing = threading.Event(), threading.Event()
        self.breaks = False
        self._lock = threading.Lock()

    def __call__(self, asked: Handler) -> None:
        address = urlsplit(asked.path)
        query = parse_qs(address.query)
        if "watch" not in query:
            return asked.say(200, {"metadata": {"resourceVersion": "7"}, "items": []})
        asked.send_response(200)
        asked.send_header("Transfer-Encoding", "chunked")
        asked.end_headers()
        with self._lock:
            self.streams[address.path] += 1
            self.limits.append(float(query["timeoutSeconds"][0]))
            lasts = self.closing if self.streams[address.path] > 1 else self.over
        lasts.wait(_WITHIN_S)
        if self.breaks or self.closing.is_set():
            asked.close_connection = True
            return None
        asked.wfile.write(b"0\r\n\r\n")
        return None


@pytest.fixture
def server() -> SilentServer:
    return SilentServer()


@pytest.fixture
def watcher(server: SilentServer, tmp_path: Path) -> Iterator[Watcher]:
    """Give a watcher all whose streams are open."""
    with api_server(tmp_path, server) as kubeconfig:
        watcher = Watcher(KubeconfigFile(kubeconfig), Cache(), lambda _services: None)
        watcher.follow(["default"])
        until(lambda: watcher.standing().streaming == len(WATCHED))
        yield watcher
        watcher.close()
        server.over.set()
        server.closing.set()


def until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s"
        time.sleep(0.01)


def again(server: SilentServer, watcher: Watcher) -> bool:
    """Return whether each stream has been opened a second time."""
    is_open = watcher.standing().streaming == len(WATCHED)
    return len(server.streams) == len(WATCHED) and set(server.streams.values()) == {2} and is_open


def test_a_silent_stream_ends_before_its_reader_gives_up_and_is_no_warning(
    server: SilentServer, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    assert max(server.limits) + 10 <= watching._SILENCE_S
    with caplog.at_level("INFO", _LOGGER):
        server.over.set()
        until(lambda: again(server, watcher))
    assert caplog.messages == []
    assert watcher.standing().problems == ()


def test_a_stream_that_breaks_is_a_warning(
    server: SilentServer, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    server.breaks = True
    with caplog.at_level("INFO", _LOGGER):
        server.over.set()
        until(lambda: again(server, watcher))
    levels = Counter(record.levelname for record in caplog.records)
    assert levels == {"WARNING": len(WATCHED), "INFO": len(WATCHED)}, "away, and there again"
    assert all("does not answer" in each.message for each in caplog.records if each.levelname == "WARNING")
