"""Web pages of other origins, limits and forged callers at services behind Envoy Gateway."""

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
from django.db.models import Sum
from django.utils import timezone

from clusters.models import KUBERNETES, Cluster
from common.errors import InvalidInput
from deployments.models import InferenceService
from integrations.clusters.base import ANY_ORIGIN, Access, Cors, Limits
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.local.envoy.access import OURS
from integrations.otlp.logs_receiver import LogsReceiver
from tests.cluster._support.certificates import Authority
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.guarded import ANYBODY, CALLS, DOMAIN, GUARDED, KEYS, ROUTES, WITHIN_S, Guarded, token
from tests.cluster.harness import UNRULY_RUNTIME, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until
from usage.models import HourlyUsage
from usage.services.collector import UsageCollector

pytestmark = pytest.mark.cluster
T = TypeVar("T")
_APP, _OTHER = "https://app.example.com", "https://other.example.com"
_FORGED = dict.fromkeys(OURS, "admin")
_OF_ANY_METHOD = ("v1", "version", "version by host")


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("traffic")
    with harness(plane, folder, runtime=UNRULY_RUNTIME, gateway_of=EnvoyGateway) as running:
        yield running


@pytest.fixture(scope="module")
def service(cluster: Harness) -> Iterator[Guarded]:
    driver = KubernetesDriver(cluster.api, replace(cluster.options, domain=DOMAIN, rate_limits=True))
    with httpx.Client(base_url=cluster.gateway.url, timeout=20, trust_env=False) as client:
        running = Guarded(cluster, driver, client)
        yield running
        running.generation += 1
        until(running.is_gone, "the service is gone", WITHIN_S)


@contextlib.contextmanager
def collecting(address: tuple[str, int], credential: str, tls: Path, collector: UsageCollector) -> Iterator[None]:
    """Serve a collector at the address inside the block."""
    receiver = LogsReceiver(address, credential, lambda records: collector.take(records, timezone.now()), tls)
    receiver.start()
    try:
        yield
    finally:
        receiver.close()


def usage() -> dict[tuple[str, ...], tuple[int, ...]]:
    """Return requests, errors and rows that are counted, by service, revision, team, key and token."""
    by = ("service", "revision", "team", "key", "token_id")
    sums = HourlyUsage.objects.values_list(*by).annotate(*map(Sum, ("requests", "errors", "rows"))).order_by()
    return {tuple(each[:5]): tuple(each[5:]) for each in sums}


def in_one_window(calls: Callable[[], T]) -> T:
    """Return the outcome of calls that all came within one second of the clock, which is a window of limits."""
    for _ in range(30):
        time.sleep(1.02 - time.time() % 1)
        began = int(time.time())
        found = calls()
        if int(time.time()) == began:
            return found
    pytest.fail("the calls take longer than a second")


def test_clients_of_a_public_service_cannot_forge_a_caller(service: Guarded) -> None:
    service.until_confirmed(ANYBODY)
    service.until_answered(200, "")
    for route in ROUTES:
        got = service.http(route, "of-the-models-own", **_FORGED).json()["headers"]
        assert not got.keys() & {*OURS}, route
        assert got["authorization"] == "Bearer of-the-models-own", route
    with grpc.insecure_channel(urlsplit(service.harness.gateway.url).netloc) as channel:
        for call in CALLS:
            assert service.grpc(channel, call, "", **_FORGED, **{"x-forged": "yes"}) == "OK"
    seen = [call for call in service.calls() if call["protocol"] == "grpc" and "x-forged" in call]
    assert len(seen) == len([call for call in CALLS.values() if call[0] == "ModelInfer"])
    assert not any(call.keys() & {*OURS} for call in seen)


def test_clients_of_a_guarded_service_cannot_forge_one_either(service: Guarded) -> None:
    service.driver.apply_keys(KEYS, ["default"])
    service.until_confirmed(GUARDED)
    service.until_answered(401, "")
    ours = {"fairlead-caller": "ci", "fairlead-key": "1" * 32, "fairlead-team": "fraud"}

    def has_caller(route: str) -> bool:
        return "fairlead-caller" in service.http(route, token()).json()["headers"]

    until(lambda: all(map(has_caller, ROUTES)), "the routes of before are gone", WITHIN_S)
    for route in ROUTES:
        got = service.http(route, token(), **_FORGED).json()["headers"]
        assert {name: got[name] for name in got.keys() & {*OURS}} == ours, route
        assert "fairlead-team" not in service.http(route, token(team=""), **_FORGED).json()["headers"], route
    with grpc.insecure_channel(urlsplit(service.harness.gateway.url).netloc) as channel:
        assert service.grpc(channel, "main", token(), **_FORGED, **{"x-forged": "guarded"}) == "OK"
    (seen,) = (call for call in service.calls() if call.get("x-forged") == "guarded")
    assert {name: seen[name] for name in seen.keys() & {*OURS}} == ours


@pytest.mark.parametrize("used", [{"exhausted": ("fraud",)}, {"exhausted_keys": ("ci",)}])
def test_used_quotas_refuse_their_callers_on_every_route_until_they_open(
    service: Guarded, used: dict[str, tuple[str, ...]]
) -> None:
    service.driver.apply_keys(KEYS, ["default"])
    service.until_confirmed(GUARDED)
    service.until_answered(200, token())
    service.driver.apply_keys(replace(KEYS, **used), ["default"])
    service.until_answered(403, token(), within_s=5)
    assert "a quota of the month is used up" in service.http("main", token()).json()["error"]
    other = token(key="other", team="readers", token_id="9" * 32)
    assert {service.http(route, other).status_code for route in ROUTES} == {200}
    with grpc.insecure_channel(urlsplit(service.harness.gateway.url).netloc) as channel:
        assert {service.grpc(channel, call, token()) for call in CALLS} == {"PERMISSION_DENIED"}
        assert service.grpc(channel, "main", other) == "OK"
    service.until_confirmed(GUARDED, limits=Limits(100))  # the driver's next apply has them too
    service.until_answered(403, token())
    service.driver.apply_keys(replace(KEYS, exhausted_services=("default/digits",)), ["default"])
    service.until_answered(403, other, within_s=5)
    service.driver.apply_keys(KEYS, ["default"])
    service.until_answered(200, token(), within_s=5)


@pytest.mark.parametrize("access", [GUARDED, ANYBODY], ids=["guarded", "public"])
def test_web_pages_of_named_origins_may_call(service: Guarded, access: Access | None) -> None:
    service.driver.apply_keys(KEYS, ["default"])
    origin = _APP if access else _OTHER
    service.until_confirmed(access, cors=Cors((_APP,) if access else (ANY_ORIGIN,)))
    key = token() if access else ""
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}

    def preflight(route: tuple[str, str, dict[str, str]], of: str) -> httpx.Response:
        return service.client.options(route[1], headers={**route[2], **asked, "origin": of})

    def allowed(response: httpx.Response) -> bool:
        return response.headers.get("access-control-allow-origin") == origin

    def everywhere() -> bool:
        found = [response for route in ROUTES.values() if allowed(response := preflight(route, origin))]
        return len(found) == len(ROUTES) and allowed(service.http("main", key, origin=origin))

    until(everywhere, "its pages may call", WITHIN_S)
    before = len(service.calls())
    for route in ROUTES.values():
        answer = preflight(route, origin)
        assert answer.status_code == 200, route
        assert answer.headers["access-control-allow-headers"] == "authorization", route
        assert "access-control-allow-credentials" not in answer.headers, route
        if access:
            answer = preflight(route, _OTHER)
            assert "access-control-allow-origin" not in answer.headers, route
    assert len(service.calls()) == before, "no preflight reaches a model"
    for name, route in ROUTES.items():
        # Rules for V1 and for versions take every method, and pods refuse this one.
        taken = 401 if access else 405
        wanted = taken if name in _OF_ANY_METHOD else 404
        assert service.client.options(route[1], headers=route[2]).status_code == wanted, route
    assert len(service.calls()) == before + (0 if access else len(_OF_ANY_METHOD))
    if access:
        refusal = service.http("main", "", origin=origin)
        assert (refusal.status_code, refusal.headers["access-control-allow-origin"]) == (401, origin)
        assert "access-control-allow-origin" not in service.http("main", "", origin=_OTHER).headers
        service.driver.apply_keys(replace(KEYS, revoked=("1" * 32,)), ["default"])
        service.until_answered(403, token(), within_s=5)
        assert service.http("main", token(), origin=origin).headers["access-control-allow-origin"] == origin


def test_a_service_and_each_caller_have_limits_over_all_routes(service: Guarded) -> None:
    service.driver.apply_keys(KEYS, ["default"])
    service.until_confirmed(GUARDED, limits=Limits(8, 5), cors=Cors((_APP,)))
    other = token(key="other", token_id="9" * 32)
    routes = ("main", "v1", "version", "group", "preview", "host")
    until(lambda: 429 in {service.http("main", token()).status_code for _ in range(9)}, "limits", WITHIN_S)

    def by(key: str) -> list[int]:
        return [service.http(route, key).status_code for route in routes]

    found = in_one_window(lambda: (by(token()), by(other)))
    # 5 of a caller's 6, and of the next caller's 6 as many as 8 of all leave: one that is refused counts there too.
    assert [each.count(200) for each in found] == [5, 2], found
    answers = in_one_window(lambda: [service.http("main", token(), origin=_APP) for _ in range(7)])
    limited = next(each for each in answers if each.status_code == 429)
    assert "too many requests" in limited.json()["error"]
    names = ("retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "access-control-allow-origin")
    assert [limited.headers[name] for name in names] == ["1", "0", "1", _APP]
    assert service.http("main", "").status_code == 401, "who is refused counts for no limit"
    with grpc.insecure_channel(urlsplit(service.harness.gateway.url).netloc) as channel:
        codes = in_one_window(lambda: Counter(service.grpc(channel, "main", token()) for _ in range(9)))
    assert codes == {"OK": 5, "RESOURCE_EXHAUSTED": 4}


@pytest.mark.django_db(transaction=True)
def test_usage_is_counted_for_verified_callers_alone(service: Guarded, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("collector", addresses=["127.0.0.1"])
    pair.certificate.rename(tmp_path / "tls.crt")
    pair.key.rename(tmp_path / "tls.key")
    now, credential, collector = timezone.now(), secrets.token_hex(16), UsageCollector("test")
    place = Cluster.objects.create(name="here", kind=KUBERNETES, created_at=now)
    InferenceService.objects.create(cluster=place, namespace="default", name="digits", document={}, created_at=now)
    url = service.harness.gateway.url
    infer, caller, nobody = f"{url}{ROUTES['main'][1]}", ("fraud", "ci", "1" * 32), ("", "", "")
    first, second = ("digits", "digits-00001"), ("digits", "digits-00002")
    preview, refused = ("digits-preview", "digits-00002"), ("digits", "")

    def until_counted(key: str) -> None:
        def look() -> bool:
            bearer = {"authorization": f"Bearer {token(key=key, token_id='9' * 32)}"}
            assert httpx.post(infer, headers=bearer, trust_env=False).status_code == 200
            collector.store(timezone.now())
            return HourlyUsage.objects.filter(key=key).exists()

        until(look, "the gateway exports", WITHIN_S)

    def counted() -> dict[tuple[str, ...], tuple[int, ...]]:
        collector.store(timezone.now())
        return {group: sums for group, sums in usage().items() if group[3] != "before"}

    service.driver.apply_keys(KEYS, ["default"])
    service.until_confirmed(GUARDED)
    service.until_answered(401, "")
    service.until_answered(200, token())
    with service.harness.gateway.exporting(credential, authority.certificate) as address:
        with collecting(address, credential, tmp_path, collector):
            until_counted("before")
            called = grpc.insecure_channel(urlsplit(url).netloc)
            with httpx.Client(base_url=url, trust_env=False) as client, called as channel:
                for method, path, headers in ROUTES.values():
                    for own in ({"authorization": f"Bearer {token()}"}, {}):
                        client.request(method, path, headers={**headers, **own, **_FORGED})
                own = {"authorization": f"Bearer {token()}"}
                client.post(infer, headers={**own, "x-rows": "7"}, content=b"[1, 2, 3, 4]")
                broken = "a" + "\N{LATIN SMALL LETTER E WITH ACUTE}" * 15  # which Envoy cuts inside of a letter
                client.post(infer, headers={**own, "x-rows": broken.encode("latin-1")}, content=b"[1, 2, 3, 4]")
                assert service.grpc(channel, "main", token(), **{"x-rows": "3"}) == "OK"
                assert service.grpc(channel, "preview", token()) == "OK"
                assert service.grpc(channel, "main", "", **_FORGED) == "UNAUTHENTICATED"
            wanted = {
                (*first, *caller): (7, 0, 4 + 7 + 1 + 3),
                (*second, *caller): (2, 0, 2),
                (*preview, *caller): (3, 0, 3),
                (*refused, *nobody): (7, 7, 0),
                ("digits-preview", "", *nobody): (2, 2, 0),
            }
            with contextlib.suppress(pytest.fail.Exception):
                until(lambda: counted() == wanted, "all is counted", 20)
            assert counted() == wanted
        with collecting(address, credential, tmp_path, collector):
            until_counted("after the collector was away")
            service.until_confirmed(ANYBODY)
            service.until_answered(200, "")
            for bearer in ({}, {"authorization": f"Bearer {token()}"}):
                forged = {**bearer, **_FORGED, "x-rows": "4000"}
                httpx.post(infer, headers=forged, content=b" " * 5000, trust_env=False)

            def has_both() -> bool:
                collector.store(timezone.now())
                return usage().get((*first, *nobody), (0, 0, 0))[2] >= 8000

            until(has_both, "both are counted", 20)
            assert {key for *_, key, _ in usage()} == {"before", "ci", "", "after the collector was away"}


def test_all_requests_to_a_public_service_are_one_callers(service: Guarded) -> None:
    service.until_confirmed(ANYBODY, limits=Limits(100, 3))
    numbers = iter(range(10_000))

    def forged() -> int:
        return service.http("main", "", **{"fairlead-caller": f"caller-{next(numbers)}"}).status_code

    until(lambda: {forged() for _ in range(5)} == {200, 429}, "limits", WITHIN_S)
    assert in_one_window(lambda: Counter(forged() for _ in range(8))) == {200: 3, 429: 5}


def test_without_the_rate_limit_service_requests_go_on(service: Guarded) -> None:
    service.until_confirmed(ANYBODY, limits=Limits(2))
    limits = service.harness.gateway.rate_limits

    def found() -> Counter[object]:
        return Counter(service.http("main", "").status_code for _ in range(8))

    until(lambda: found()[429], "limits", WITHIN_S)
    limits.stop()
    try:
        assert found() == {200: 8}
    finally:
        limits.start()
    until(lambda: found()[429], "limits again", WITHIN_S)


def test_limits_are_refused_where_the_cluster_has_no_rate_limit_service(service: Guarded) -> None:
    without = KubernetesDriver(service.harness.api, replace(service.harness.options, domain=DOMAIN))
    with pytest.raises(InvalidInput, match=r"the cluster's gateway has no rate limit service; .* set its rateLimits"):
        without.check(service.desired(GUARDED, limits=Limits(5)))
