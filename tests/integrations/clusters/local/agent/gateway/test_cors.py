"""Cross-origin calls from browsers at a real Envoy: preflights, requests with and without a key, false origins."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from access.domain.tokens import Claims, new_signing_key, signed
from integrations.clusters.base import Access, CallerKeys, Cors
from tests.integrations._support.gateways import running, service

ORIGIN, OTHER = "https://app.example.com", "http://localhost:3000"
INFER = "/serving/default/{service}/v2/models/{model}/infer"
PRIVATE, PUBLIC = new_signing_key("k1")
NOW = datetime.now(UTC)
KEY = signed(Claims("ci", "id", "fraud", "", ("default/*",), NOW, NOW + timedelta(days=1)), private=PRIVATE, kid="k1")
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
TRICKS = (
    "https://app.example.com.evil.test",
    "https://evil.test/https://app.example.com",
    "https://xapp.example.com",
    "http://app.example.com",
    "https://app.example.com:8443",
    "https://app.example.com/",
    "https://app_example.com",
    "null",
    "*",
    "",
)
SERVICES = (
    service("named", access=Access(), cors=Cors((ORIGIN, OTHER), 3600), preview="r-00001"),
    service("open", cors=Cors(("*",))),
    service("closed", access=Access()),
    service("plain"),
)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(tmp_path, SERVICES, keys=CallerKeys(public=(PUBLIC,))) as gateway,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=20, trust_env=False) as made,
    ):
        yield made


def path(name: str) -> str:
    return INFER.format(service=name, model=name.removesuffix("-preview"))


def allowed(answer: httpx.Response) -> dict[str, str]:
    """Return the headers by which a browser decides."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


async def test_a_page_of_a_named_origin_calls_a_service_that_needs_a_key(client: httpx.AsyncClient) -> None:
    for name in ("named", "named-preview"):
        for origin in (ORIGIN, OTHER):
            asked = await client.options(path(name), headers={**PREFLIGHT, "origin": origin})
            said = allowed(asked)
            assert (asked.status_code, said["access-control-allow-origin"]) == (200, origin)
            assert said["access-control-allow-headers"] == "authorization, *"
            assert said["access-control-allow-methods"] == "GET, HEAD, POST"
            assert said["access-control-max-age"] == "3600"
            assert "access-control-allow-credentials" not in said

            keyed = {"origin": origin, "authorization": f"Bearer {KEY}"}
            answer = await client.post(path(name), headers=keyed)
            assert (answer.status_code, allowed(answer)["access-control-allow-origin"]) == (200, origin)
            assert {"fairlead-revision", "x-request-id", "retry-after"} <= set(
                allowed(answer)["access-control-expose-headers"].split(", ")
            )
            assert "access-control-allow-credentials" not in allowed(answer)

            refused = await client.post(path(name), headers={"origin": origin})
            assert (refused.status_code, allowed(refused)["access-control-allow-origin"]) == (401, origin), (
                "the page may read why"
            )


@pytest.mark.parametrize("origin", TRICKS)
async def test_no_other_origin_is_allowed(client: httpx.AsyncClient, origin: str) -> None:
    for name in ("named", "closed", "plain"):
        asked = await client.options(path(name), headers={**PREFLIGHT, "origin": origin})
        answer = await client.post(path(name), headers={"origin": origin, "authorization": f"Bearer {KEY}"})
        assert "access-control-allow-origin" not in allowed(asked), "so a browser sends nothing further"
        assert allowed(answer) == {}
        assert answer.status_code == 200, "what is no browser is not concerned"


async def test_a_service_without_origins_allows_none_and_a_public_one_may_allow_all(client: httpx.AsyncClient) -> None:
    for name in ("closed", "plain"):
        assert allowed(await client.options(path(name), headers={**PREFLIGHT, "origin": ORIGIN})) == {}
        assert allowed(await client.post(path(name), headers={"origin": ORIGIN})) == {}
    for origin in ("https://anything.example", "null"):
        asked = await client.options(path("open"), headers={**PREFLIGHT, "origin": origin})
        answer = await client.post(path("open"), headers={"origin": origin})
        for each in (asked, answer):
            assert each.status_code == 200
            assert allowed(each)["access-control-allow-origin"] in (origin, "*")
            assert "access-control-allow-credentials" not in allowed(each)


async def test_a_preflight_reaches_no_model_and_by_host_it_is_the_same(client: httpx.AsyncClient) -> None:
    asked = await client.options(
        "/v2/models/named/infer", headers={**PREFLIGHT, "origin": ORIGIN, "host": "named.default.example"}
    )
    assert (asked.status_code, allowed(asked)["access-control-allow-origin"]) == (200, ORIGIN)
    assert "fairlead-revision" not in asked.headers
    plain = await client.options(path("named"), headers={"origin": ORIGIN})
    assert plain.status_code == 401, "without what it asks for it is no preflight"
