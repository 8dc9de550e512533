"""Every route times every credential over each protocol, at a real Envoy that is configured as the agent does it."""

import base64
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from access.domain.tokens import new_signing_key
from integrations.clusters.base import Access, CallerKeys, IssuerKeys
from integrations.clusters.local.envoy.access import OURS
from integrations.clusters.local.envoy.values import Backend, ServiceRoute
from tests._support.gateway import GOOD, NOW, PRIVATE, PUBLIC, Gateway, running_gateway, token

OTHER_PRIVATE, _ = new_signing_key("k1")
ISSUED = {"iss": "https://id.example", "aud": "models", "sub": "alice", "jti": None, "services": None, "team": None}
"""What a token of another issuer says instead, which has no claims of ours."""
CORP_PRIVATE, CORP_PUBLIC = new_signing_key("k1")
LAB_PRIVATE, LAB_PUBLIC = new_signing_key("k1")
ISSUERS = (
    IssuerKeys("corp", "https://id.example", "models", (CORP_PUBLIC,)),
    IssuerKeys("lab", "https://lab.example", "models", (LAB_PUBLIC,)),
    IssuerKeys("none", "https://none.example", "models", ()),
)
OK, UNAUTHENTICATED, DENIED = (200, 0), (401, 16), (403, 7)


def of_issuer(private: str = CORP_PRIVATE, **said: Any) -> str:
    return token(private=private, **{**ISSUED, **said})


def unsigned() -> str:
    parts = ({"alg": "none", "typ": "JWT"}, GOOD.json())
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{head}.{body}."


def tampered() -> str:
    head, _, signature = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps({**GOOD.json(), "services": ["*"]}).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


CREDENTIALS: dict[str, str | None] = {
    "none": None,
    "valid": token(),
    "for every service": token(replace(GOOD, services=("*",))),
    "for this service": token(replace(GOOD, services=("default/digits",))),
    "for names that begin so": token(replace(GOOD, services=("default/dig*",))),
    "of another service": token(replace(GOOD, services=("default/other",))),
    "of another namespace": token(replace(GOOD, services=("prod/*", "prod/digits"))),
    "for a longer name": token(replace(GOOD, services=("default/digits-2", "default/digits-*"))),
    "of another team": token(replace(GOOD, team="risk", key="batch")),
    "of a user": token(replace(GOOD, team="risk", key="batch", user="alice")),
    "named": token(replace(GOOD, team="risk", key="nightly")),
    "expired": token(replace(GOOD, expires_at=NOW - timedelta(hours=1))),
    "without an expiry": token(exp=None),
    "not yet": token(nbf=int(time.time()) + 86400),
    "of another audience": token(aud="fairlead-api"),
    "of another issuer": token(iss="elsewhere"),
    "signed by somebody else": token(private=OTHER_PRIVATE),
    "unsigned": unsigned(),
    "tampered": tampered(),
    "revoked": token(replace(GOOD, token_id="id-revoked")),
    "wrong": "flt_abc",
    "of an issuer": of_issuer(),
    "of an issuer, its robot": of_issuer(sub="robot:nightly"),
    "of an issuer, not named": of_issuer(sub="mallory"),
    "of an issuer, as if a key": of_issuer(sub="nightly", jti="id-good", services=["*"], team="fraud", user="alice"),
    "of an issuer, expired": of_issuer(exp=int(time.time()) - 3600),
    "of an issuer, other audience": of_issuer(aud="fairlead-gateway"),
    "of an issuer, signed by another": of_issuer(LAB_PRIVATE),
    "of an issuer, signed as a key": of_issuer(PRIVATE),
    "of another issuer, same name": of_issuer(LAB_PRIVATE, iss="https://lab.example"),
    "a key signed by an issuer": token(private=CORP_PRIVATE),
}
WORTHLESS = {
    "none", "expired", "without an expiry", "not yet", "of another audience", "of another issuer",
    "signed by somebody else", "unsigned", "tampered", "revoked", "wrong", "of an issuer, expired",
    "of an issuer, other audience", "of an issuer, signed by another", "of an issuer, signed as a key",
    "a key signed by an issuer",
}  # fmt: skip
NOT_NAMED = {
    "of another team", "of an issuer, not named", "of an issuer, as if a key", "of another issuer, same name"
}  # fmt: skip
OF_OTHER_SERVICES = {"of another service", "of another namespace", "for a longer name"}
ACCESS: dict[str, Access | None] = {
    "public": None,
    "authenticated": Access(),
    "restricted": Access(("fraud",), ("alice",), ("nightly",), subjects=("corp:alice", "corp:robot:*")),
}
HTTP_ROUTES = {
    "main": "/v2/models/{model}/infer",
    "v1": "/v1/models/{model}:predict",
    "version": "/v2/models/{model}/versions/7/infer",
    "metadata": "/v2/models/{model}",
    "health": "/v2/health/ready",
    "no such path": "/v2/repository/index",
}


def expected(access: str, credential: str) -> tuple[int, int]:
    """Return the status over HTTP and over gRPC."""
    if access == "public":
        return UNAUTHENTICATED if credential == "revoked" else OK
    if credential in WORTHLESS:
        return UNAUTHENTICATED
    if credential in OF_OTHER_SERVICES or (access == "restricted" and credential in NOT_NAMED):
        return DENIED
    return OK


def headers_of(credential: str) -> dict[str, str]:
    value = CREDENTIALS[credential]
    return {} if value is None else {"authorization": f"Bearer {value}"}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path) as made:
        await made.push(keys=CallerKeys(public=(PUBLIC,), revoked=("id-revoked",), issuers=ISSUERS))
        yield made


def of(access: str) -> tuple[ServiceRoute, ...]:
    return (
        ServiceRoute("default", "digits", (Backend("r-00001", "7", 100),), access=ACCESS[access], preview="r-00001"),
    )


@pytest.mark.parametrize("access", ACCESS)
async def test_every_credential_over_every_route(gateway: Gateway, access: str) -> None:
    await gateway.push(services=of(access))
    wrong = []
    async with httpx.AsyncClient(timeout=20) as client:
        for credential in CREDENTIALS:
            headers = headers_of(credential)
            status, code = expected(access, credential)
            for service in ("digits", "digits-preview"):
                for name, path in HTTP_ROUTES.items():
                    below = f"/serving/default/{service}{path.format(model='digits')}"
                    found = await gateway.http(client, below, headers)
                    wanted = 404 if status == 200 and name == "no such path" else status
                    if found.status_code != wanted or (wanted != 200 and not found.json()["error"]):
                        wrong.append((credential, service, name, found.status_code, wanted, found.text))
                found = await gateway.http(
                    client,
                    HTTP_ROUTES["main"].format(model="digits"),
                    {**headers, "host": f"{service}.default.example"},
                )
                if found.status_code != status:
                    wrong.append((credential, service, "by host", found.status_code, status, found.text))
                for method in ("ModelInfer", "ModelReady", "ServerLive"):
                    was = await gateway.grpc(method, {**headers, "fairlead-service": f"default/{service}"})
                    if was[0] != code or was[1].startswith("{"):
                        wrong.append((credential, service, method, was, code))
    assert wrong == []


@pytest.mark.parametrize("credential", ["of another service", "of another team"])
async def test_no_header_of_a_client_widens_what_its_key_may(gateway: Gateway, credential: str) -> None:
    await gateway.push(services=of("restricted"))
    forged = headers_of(credential) | dict.fromkeys(OURS, "fraud") | {"fairlead-scope": "*", "fairlead-caller": "ci"}
    path = "/serving/default/digits/v2/models/digits/infer"
    async with httpx.AsyncClient(timeout=20) as client:
        assert (await gateway.http(client, path, forged)).status_code == 403
        host = forged | {"host": "digits.default.example"}
        assert (await gateway.http(client, "/v2/models/digits/infer", host)).status_code == 403
    assert (await gateway.grpc("ModelInfer", forged | {"fairlead-service": "default/digits"}))[0] == 7


async def test_the_model_gets_the_callers_name_and_never_the_credential(gateway: Gateway) -> None:
    await gateway.push(services=of("authenticated"))
    forged = dict.fromkeys(OURS, "admin")
    async with httpx.AsyncClient(timeout=20) as client:
        gateway.asked.clear()
        await gateway.http(client, "/serving/default/digits/v2/models/digits/infer", headers_of("valid") | forged)
        await gateway.grpc("ModelInfer", headers_of("valid") | forged | {"fairlead-service": "default/digits"})
        assert [each["fairlead-caller"] for each in gateway.asked] == ["ci", "ci"]
        assert [each["fairlead-team"] for each in gateway.asked] == ["fraud", "fraud"]
        assert all("fairlead-issuer" not in each and "fairlead-subject" not in each for each in gateway.asked)
        assert all("authorization" not in each and "fairlead-scope" not in each for each in gateway.asked)
        gateway.asked.clear()
        as_if = headers_of("of an issuer, as if a key") | forged
        await gateway.http(client, "/serving/default/digits/v2/models/digits/infer", as_if)
        await gateway.grpc("ModelInfer", as_if | {"fairlead-service": "default/digits"})
        assert [each["fairlead-subject"] for each in gateway.asked] == ["nightly", "nightly"]
        assert [each["fairlead-issuer"] for each in gateway.asked] == ["https://id.example"] * 2
        assert all(
            not ({"authorization", *OURS} - {"fairlead-issuer", "fairlead-subject"}) & set(each)
            for each in gateway.asked
        )
        await gateway.push(services=of("public"))
        gateway.asked.clear()
        for keys in (gateway.routing.keys, CallerKeys()):
            await gateway.push(keys=keys)
            await gateway.http(client, "/serving/default/digits/v2/models/digits/infer", forged)
            await gateway.grpc("ModelInfer", forged | {"fairlead-service": "default/digits"})
        assert len(gateway.asked) == 4
        assert all(not set(forged) & set(each) for each in gateway.asked)


async def test_without_keys_nothing_is_valid_and_a_new_key_and_a_revocation_are_in_force_at_once(
    gateway: Gateway,
) -> None:
    await gateway.push(services=of("authenticated"), keys=CallerKeys())
    path, headers = "/serving/default/digits/v2/models/digits/infer", headers_of("valid")
    async with httpx.AsyncClient(timeout=20) as client:
        assert (await gateway.http(client, path, headers)).status_code == 401
        await gateway.push(keys=CallerKeys(public=(PUBLIC,)))
        assert (await gateway.http(client, path, headers)).status_code == 200
        await gateway.push(keys=CallerKeys(public=(PUBLIC,), revoked=(GOOD.token_id,)))
        refused = await gateway.http(client, path, headers)
        assert refused.status_code == 401
        assert "revoked" in refused.json()["error"]
        await gateway.push(keys=CallerKeys(public=(PUBLIC,), revoked=("id-revoked",)))


async def test_clocks_may_differ_by_a_minute(gateway: Gateway) -> None:
    await gateway.push(services=of("authenticated"))
    path, now = "/serving/default/digits/v2/models/digits/infer", int(time.time())
    said: list[tuple[dict[str, int], int]] = [
        ({"exp": now - 20}, 200),
        ({"exp": now - 70}, 401),
        ({"nbf": now + 20}, 200),
        ({"nbf": now + 180}, 401),
        ({"iat": now + 3600}, 200),
    ]
    async with httpx.AsyncClient(timeout=20) as client:
        for claims, status in said:
            headers = {"authorization": f"Bearer {token(**claims)}"}
            assert (await gateway.http(client, path, headers)).status_code == status, claims
