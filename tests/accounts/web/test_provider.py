"""Answers of an OpenID provider to sign-ins that go on side by side; `tests/browser/test_sign_in.py` has whole ones."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import AuditEntry

pytestmark = pytest.mark.django_db
BACK = "/signin/provider/back"


class Metadata(BaseHTTPRequestHandler):
    """What a provider publishes of itself; it is asked nothing else."""

    def do_GET(self) -> None:
        issuer = f"http://{self.headers['Host']}"
        scopes = ["openid", "profile", "offline_access"]
        metadata = {"issuer": issuer, "authorization_endpoint": f"{issuer}/auth", "scopes_supported": scopes}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(metadata).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    settings.OIDC_ISSUER = f"http://127.0.0.1:{server.server_port}"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = "fairlead", "a-secret-of-the-tests"
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def begin(client: Client, page: str) -> str:
    """Begin a sign-in for a page, and return its state."""
    query = parse_qs(urlsplit(client.get("/signin/provider/", {"next": page})["Location"]).query)
    assert "offline_access" in query["scope"][0].split()
    return query["state"][0]


def test_each_sign_in_of_a_browser_keeps_its_page_and_its_scopes(client: Client) -> None:
    first, second = begin(client, "/models/"), begin(client, "/tokens/")
    refused = client.get(BACK, {"error": "access_denied", "state": first})
    assert refused.status_code == 401
    assert 'name="next" value="/models/"' in refused.content.decode()
    again = client.get(BACK, {"error": "invalid_scope", "state": second})
    query = parse_qs(urlsplit(again["Location"]).query)
    assert "offline_access" not in query["scope"][0].split()
    failed = client.get(BACK, {"error": "invalid_scope", "state": query["state"][0]})
    assert failed.status_code == 401, "without the scope there is nothing to leave out"
    assert 'name="next" value="/tokens/"' in failed.content.decode()


def test_a_state_of_another_browser_says_nothing(client: Client) -> None:
    state = begin(Client(), "/models/")
    answer = client.get(BACK, {"error": "invalid_scope", "state": state})
    assert answer.status_code == 401
    assert "/models/" not in answer.content.decode()


@pytest.mark.parametrize("error", ["temporarily_unavailable", "server_error"])
def test_a_provider_that_cannot_for_now_refuses_no_one(client: Client, error: str) -> None:
    answer = client.get(BACK, {"error": error, "state": begin(client, "/models/")})
    assert answer.status_code == 503
    assert f"did not finish the sign-in: {error}; begin it again" in answer.content.decode()
    assert not AuditEntry.objects.filter(action="session.refuse").exists()
