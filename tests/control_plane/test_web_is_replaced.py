"""The web is told to end while a model is uploaded: it waits for it, or the command line sends it to the next one."""

import asyncio
import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.files.upload_sources import Source
from registry.models import ModelVersion
from tests.servers.parts import free_port

DEADLINE_S = 120.0
PIECE, PIECES = bytes(range(256)) * 1024, 40  # more than connections hold on their way
DIGEST = hashlib.sha256(PIECE * PIECES).hexdigest()


class Web:
    """The control plane under uvicorn, in a thread."""

    def __init__(self, port: int, *, shutdown_s: int) -> None:
        from control_plane.asgi import application  # noqa: PLC0415 - needs Django's settings

        self._port = port
        config = uvicorn.Config(application, log_level="critical", lifespan="off", timeout_graceful_shutdown=shutdown_s)
        self._server = uvicorn.Server(config)
        listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve([listener])), name="web")
        self._thread.start()
        self._until(lambda: self._server.started, "the web's start")

    def end(self) -> None:
        """Tell it to end, as SIGTERM does, and wait until nobody reaches it any more."""
        self._server.should_exit = True
        self._until(lambda: not self._is_reached(), "the end of new connections")

    def join(self) -> None:
        """Wait until it has ended."""
        self._server.should_exit = True
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    def _is_reached(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
        except OSError:
            return False
        return True

    def _until(self, look: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not look():
            assert time.monotonic() < deadline, what
            time.sleep(0.01)


class Model:
    """A model file; `halfway` happens in the middle of its first reading."""

    def __init__(self, halfway: Callable[[], None]) -> None:
        self._halfway = halfway
        self.readings = 0

    @property
    def source(self) -> Source:
        return Source("model.onnx", len(PIECE) * PIECES, self._pieces)

    def _pieces(self) -> Iterator[bytes]:
        self.readings += 1
        for number in range(PIECES):
            if (self.readings, number) == (1, PIECES // 2):
                self._halfway()
            yield PIECE


@contextmanager
def client(api: Callable[..., APIClient], port: int) -> Iterator[Client]:
    token = str(api(Scope.ADMIN)._credentials["HTTP_AUTHORIZATION"]).removeprefix("Bearer ")
    with Client(Access(f"http://127.0.0.1:{port}", token)) as made:
        yield made


@pytest.fixture(autouse=True)
def _folder(transactional_db: None, settings: Settings, tmp_path: Path) -> None:
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"


def test_an_upload_under_way_is_waited_for(api: Callable[..., APIClient]) -> None:
    port = free_port()
    web = Web(port, shutdown_s=600)
    model = Model(halfway=web.end)
    with client(api, port) as person:
        version = person.upload("models/digits/versions", model.source, DIGEST, lambda _count: None)
    web.join()
    assert version["number"] == 1
    assert model.readings == 1


def test_an_upload_that_takes_longer_is_sent_again_to_the_next_web(api: Callable[..., APIClient]) -> None:
    port = free_port()
    webs = [Web(port, shutdown_s=1)]

    def replace() -> None:
        webs[0].join()
        webs.append(Web(port, shutdown_s=600))

    model = Model(halfway=replace)
    sent: list[int] = []
    with client(api, port) as person:
        version = person.upload("models/digits/versions", model.source, DIGEST, sent.append)
    webs[1].join()
    assert version["number"] == 1
    assert model.readings == 2
    assert sum(sent) == len(PIECE) * PIECES
    assert ModelVersion.objects.count() == 1
