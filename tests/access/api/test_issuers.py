"""Issuers over the API: their keys given or fetched, checked, fetched again, and what gateways are sent."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from pytest_django import Settings
from rest_framework.test import APIClient

from access.models import TokenIssuer
from access.services.gateways import caller_keys
from access.services.issuers import MOST_ISSUERS, keys_refresh
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from serving_runtime.shared.egress import networks
from tests import scenes

pytestmark = pytest.mark.django_db
BODY = {"name": "corp", "issuer": "https://id.example", "audience": "models", "keys": scenes.PUBLIC_KEYS}


class Provider:
    """An OpenID provider's two documents, served on a port of this machine; `documents` may be changed."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        documents = self.documents

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = documents.get(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.publish(scenes.PUBLIC_KEYS)

    def publish(self, keys: Any, *, issuer: str = "") -> None:
        metadata = {"issuer": issuer or self.url, "jwks_uri": f"{self.url}/keys"}
        self.documents["/.well-known/openid-configuration"] = json.dumps(metadata).encode()
        self.documents["/keys"] = json.dumps(keys).encode()


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    settings.EGRESS_ALLOWED_NETWORKS = networks("127.0.0.0/8")
    made = Provider()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_an_issuer_with_given_keys_reaches_gateways_until_it_is_deleted(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    made = client.post("/api/v1/issuers", BODY)
    assert made.status_code == 201
    assert (made.json()["keys"], made.json()["keys_given"]) == (1, True)
    (sent,) = caller_keys(now=timezone.now()).issuers
    assert (sent.name, sent.issuer, sent.audience) == ("corp", "https://id.example", "models")
    assert client.get("/api/v1/issuers").json()["results"] == [client.get("/api/v1/issuers/corp").json()]
    assert client.post("/api/v1/issuers", BODY).status_code == 409
    assert client.delete("/api/v1/issuers/corp").status_code == 204
    assert client.delete("/api/v1/issuers/corp").status_code == 404
    assert caller_keys(now=timezone.now()).issuers == ()
    actions = AuditEntry.objects.filter(target="issuers/corp").values_list("action", flat=True)
    assert sorted(actions) == ["issuer.create", "issuer.delete"]


def test_keys_are_fetched_and_fetched_again(api: Callable[..., APIClient], provider: Provider) -> None:
    asked = {**BODY, "issuer": provider.url}
    del asked["keys"]
    assert api(Scope.ADMIN).post("/api/v1/issuers", asked).status_code == 201
    new = RSAKey.generate_key(2048, {"kid": "new", "use": "sig"}).as_dict(private=False)
    provider.publish({"keys": [*scenes.PUBLIC_KEYS["keys"], new]})
    keys_refresh(now=timezone.now())
    assert [key["kid"] for key in TokenIssuer.objects.get().public] == ["k1", "new"]
    provider.documents.clear()
    keys_refresh(now=timezone.now())
    row = TokenIssuer.objects.get()
    assert "status 404" in row.failure
    assert len(row.public) == 2, "the keys stay"
    provider.publish(scenes.PUBLIC_KEYS)
    keys_refresh(now=timezone.now())
    assert TokenIssuer.objects.get().failure == ""


def test_secrets_and_keys_that_gateways_cannot_use_are_left_out(api: Callable[..., APIClient]) -> None:
    usable = [ECKey.generate_key("P-384"), OKPKey.generate_key("Ed25519"), RSAKey.generate_key(2048)]
    unusable = [OctKey.generate_key(256), ECKey.generate_key("secp256k1"), OKPKey.generate_key("X25519")]
    rsa = RSAKey.generate_key(2048).as_dict(private=False)
    keys: list[Any] = [key.as_dict(private=True) for key in (*unusable, *usable)]
    keys += [
        {"kty": "RSA", "n": "x" * 171, "e": "AQAB"},
        {**scenes.PUBLIC_KEYS["keys"][0], "use": "enc"},
        {**scenes.PUBLIC_KEYS["keys"][0], "alg": "none"},
        {**scenes.PUBLIC_KEYS["keys"][0], "x": 'a"b'},
        {**ECKey.generate_key("P-256").as_dict(private=False), "y": "A" * 43},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {**rsa, "e": "Ag"},
        {**rsa, "e": "AQAAAAAB"},
        {**rsa, "n": f"{rsa['n'][:-2]}AA"},
        {"kty": ["RSA"]},
        None,
    ]
    assert api(Scope.ADMIN).post("/api/v1/issuers", {**BODY, "keys": {"keys": keys}}).status_code == 201
    kept = TokenIssuer.objects.get().public
    assert [key["kty"] for key in kept] == ["EC", "OKP", "RSA"]
    assert all(set(key) <= {"kty", "crv", "x", "y", "n", "e", "kid", "alg"} for key in kept), "no private member"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Corp"}, "name"),
        ({"issuer": "id.example"}, "issuer"),
        ({"issuer": "https://user@id.example"}, "issuer"),
        ({"issuer": "https://id.example\nx"}, "issuer"),
        ({"audience": ""}, "audience"),
        ({"keys": {"keys": []}}, "keys"),
        ({"keys": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}}, "keys"),
        ({"keys": "text"}, "keys"),
        ({"secret": "x"}, "secret"),
    ],
)
def test_a_wrong_field_is_named(api: Callable[..., APIClient], change: dict[str, object], field: str) -> None:
    answer = api(Scope.ADMIN).post("/api/v1/issuers", {**BODY, **change})
    assert answer.status_code == 400
    assert field in answer.content.decode()
    assert not TokenIssuer.objects.exists()


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ({}, "status 404"),
        ({"/.well-known/openid-configuration": b"<html>"}, "something else than JSON"),
        ({"/.well-known/openid-configuration": b"[" * 100_000}, "something else than JSON"),
        ({"/.well-known/openid-configuration": b"x" * 300_000}, "more than 262144 bytes"),
        ({"/.well-known/openid-configuration": b'{"issuer": "https://other"}'}, "is of issuer"),
    ],
)
def test_what_a_provider_publishes_is_checked(
    api: Callable[..., APIClient], provider: Provider, documents: dict[str, bytes], sentence: str
) -> None:
    provider.documents.clear()
    provider.documents.update(documents)
    asked = {"name": "corp", "issuer": provider.url, "audience": "models"}
    answer = api(Scope.ADMIN).post("/api/v1/issuers", asked)
    assert answer.status_code in {400, 503}
    assert sentence in answer.content.decode()
    assert not TokenIssuer.objects.exists()


def test_an_issuer_on_this_network_is_not_reached(api: Callable[..., APIClient], provider: Provider) -> None:
    provider.publish(scenes.PUBLIC_KEYS)
    metadata = {"issuer": provider.url, "jwks_uri": "http://169.254.169.254/keys"}
    provider.documents["/.well-known/openid-configuration"] = json.dumps(metadata).encode()
    for url in (provider.url, "http://169.254.169.254"):
        answer = api(Scope.ADMIN).post("/api/v1/issuers", {"name": "corp", "issuer": url, "audience": "m"})
        assert "169.254.169.254" in answer.content.decode()
        assert answer.status_code == 503
    assert not TokenIssuer.objects.exists()


def test_there_are_at_most_so_many(api: Callable[..., APIClient]) -> None:
    for number in range(MOST_ISSUERS):
        scenes.issuer(f"i-{number}")
    assert api(Scope.ADMIN).post("/api/v1/issuers", BODY).status_code == 409
