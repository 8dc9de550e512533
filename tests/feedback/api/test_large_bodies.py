"""Bodies beyond the limit of other addresses, on the server as it runs: they are read only by the view."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
import uvicorn
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from feedback.models import Label
from tests import scenes

pytestmark = pytest.mark.django_db(transaction=True)
DEADLINE_S = 30.0


@pytest.fixture
def server() -> Iterator[str]:
    from control_plane.asgi import application  # noqa: PLC0415 - needs Django's settings

    running = uvicorn.Server(uvicorn.Config(application, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])), name="server")
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_a_body_of_more_than_two_mebibytes_is_taken_and_one_beyond_the_limit_refused(
    server: str, api: Callable[..., APIClient]
) -> None:
    scenes.service()
    headers = {"Authorization": api(Scope.WRITE)._credentials["HTTP_AUTHORIZATION"], "Content-Type": "text/csv"}
    address = f"{server}/api/v1/services/default/digits/feedback"
    rows = "".join(f"{'r' * 100}{number},{'x' * 256}\n" for number in range(8_000))
    content = f"request_id,value\n{rows}".encode()
    assert len(content) > 2 << 20
    taken = httpx.post(address, content=content, headers=headers, timeout=DEADLINE_S, trust_env=False)
    assert taken.json() == {"received": 8_000, "changed": 0, "repeated": 0}
    assert Label.objects.count() == 8_000
    refused = httpx.post(address, content=b"x" * (26 << 20), headers=headers, timeout=DEADLINE_S, trust_env=False)
    assert refused.status_code == 413
    assert "25 MiB" in refused.json()["error"]["message"]
