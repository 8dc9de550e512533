"""What clients meet on a gateway that does as a service's routes say: groups, versions, hosts, and nobody there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest

from integrations.clusters.base import Desired, DesiredRevision, HeaderMatch, MatchKind
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster._support.removal import remove
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.control_calls import CLOSED_METHODS, CLOSED_PATHS
from tests.integrations._support.runtimes import INFER, infer_json, infer_message, model, until

pytestmark = pytest.mark.cluster
_WITHIN_S = 300.0
_PATH = "/serving/default/digits"
_DOMAIN = "models.test"
_BETA = (HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "staff")), HeaderMatch("x-os", MatchKind.EXACT, ("a",)))
Headers = tuple[tuple[str, str], ...]


@dataclass
class Routed:
    """A service `digits` and its clients."""

    harness: Harness
    driver: KubernetesDriver
    generation: int = 0

    def revision(self, number: int, weight: int, **more: Any) -> DesiredRevision:
        stored = self.harness.store(model(number))
        name = f"digits-{number:05}"
        return DesiredRevision(name, "digits", str(number), stored.uri, stored.digest, 1, weight, **more)

    def apply(self, *revisions: DesiredRevision) -> None:
        self.generation += 1
        self.driver.apply(Desired("default", "digits", self.generation, revisions))

    def until_confirmed(self, *revisions: DesiredRevision) -> None:
        """Apply again and again, as the reconciler does, until the gateway does what is desired, and nothing newer.

        A revision gets its weight once it is ready: the gateway confirms routes, and endpoints that come after them
        reach it without.
        """
        self.generation += 1
        wanted = {each.name: (each.weight_percent, each.mirror_percent, each.match) for each in revisions}

        def look() -> bool:
            before = self.driver.observe("default", "digits")
            ready = {each.name for each in before.revisions if each.ready_replicas}
            given = tuple(each if each.name in ready else replace(each, weight_percent=0) for each in revisions)
            self.driver.apply(Desired("default", "digits", self.generation, given))
            seen = self.driver.observe("default", "digits")
            found = {each.name: (each.weight_percent, each.mirror_percent, each.match) for each in seen.revisions}
            return given == revisions and found == wanted and not seen.message

        until(look, f"the gateway does {wanted}", _WITHIN_S)

    def http(self, path: str, *headers: tuple[str, str], base: str = _PATH, host: str = "") -> tuple[int, str]:
        """Return the status and the revision that answered a POST of inputs."""
        return self.call("POST", path, *headers, base=base, host=host)

    def call(
        self, method: str, path: str, *headers: tuple[str, str], base: str = _PATH, host: str = ""
    ) -> tuple[int, str]:
        """Return the status and the revision that answered."""
        named = [*headers, ("host", host)] if host else list(headers)
        url = f"{self.harness.gateway.url}{base}{path}"
        content = infer_json() if method == "POST" else b""
        answer = httpx.request(method, url, content=content, headers=named, timeout=20, trust_env=False)
        return answer.status_code, answer.headers.get("fairlead-revision", "")

    def grpc(self, *headers: tuple[str, str], host: str = "", method: str = "ModelInfer") -> str:
        """Return the revision that answered, or the code of the refusal."""
        message = infer_message() if method == "ModelInfer" else b"\n\x06digits"  # its first field is the name
        options = [("grpc.default_authority", host)] if host else []
        metadata = headers if host else (("fairlead-service", "default/digits"), *headers)
        with grpc.insecure_channel(urlsplit(self.harness.gateway.url).netloc, options=options) as channel:
            try:
                unary = channel.unary_unary(INFER.replace("ModelInfer", method))
                _, call = unary.with_call(message, metadata=metadata, timeout=20)
            except grpc.RpcError as error:
                return str(error.code().name)
            return str(dict(call.initial_metadata()).get("fairlead-revision", ""))


@pytest.fixture(
    scope="module",
    params=[pytest.param(Gateway, id="translated for tests"), pytest.param(EnvoyGateway, id="Envoy Gateway")],
)
def cluster(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("routes"), gateway_of=request.param) as running:
        yield running


@pytest.fixture
def routed(cluster: Harness) -> Iterator[Routed]:
    driver = KubernetesDriver(cluster.api, replace(cluster.options, domain=_DOMAIN))
    service = Routed(cluster, driver)
    yield service
    remove(driver, "digits", service.generation, within_s=_WITHIN_S)


@pytest.mark.parametrize(
    "host", [pytest.param("", id="by path"), pytest.param(f"digits.default.{_DOMAIN}", id="by host")]
)
def test_a_group_gets_the_canary_and_nobody_else_does(routed: Routed, host: str) -> None:
    routed.until_confirmed(routed.revision(1, 100), routed.revision(2, 0, match=_BETA))
    base = "" if host else _PATH
    whose: dict[Headers, str] = {
        (("x-group", "beta"), ("x-os", "a")): "digits-00002",
        (("x-group", "staff"), ("x-os", "a")): "digits-00002",
        (("x-group", "beta"),): "digits-00001",
        (("x-os", "a"),): "digits-00001",
        (("x-group", "beta2"), ("x-os", "a")): "digits-00001",
        (): "digits-00001",
    }
    for headers, revision in whose.items():
        assert routed.grpc(*headers, host=host) == revision, headers
        for path in ("/v2/models/digits/infer", "/v1/models/digits:predict"):
            status, answered = routed.http(path, *headers, base=base, host=host)
            assert answered == revision, (headers, path, status)


def test_who_names_a_version_gets_it_whatever_the_group(routed: Routed) -> None:
    routed.until_confirmed(routed.revision(1, 100), routed.revision(2, 0, match=_BETA))
    beta = (("x-group", "beta"), ("x-os", "a"))
    for number in (1, 2):
        path = f"/v2/models/digits/versions/{number}/infer"
        assert routed.http(path, *beta) == (200, f"digits-{number:05}")
        assert routed.http(path, base="", host=f"digits.default.{_DOMAIN}") == (200, f"digits-{number:05}")


def test_a_group_ends_with_its_step(routed: Routed) -> None:
    beta = (("x-group", "beta"), ("x-os", "a"))
    routed.until_confirmed(routed.revision(1, 100), routed.revision(2, 0, match=_BETA))
    routed.until_confirmed(routed.revision(1, 100), routed.revision(2, 0))
    until(lambda: routed.http("/v2/models/digits/infer", *beta) == (200, "digits-00001"), "the group gets stable")
    assert routed.grpc(*beta) == "digits-00001"


def test_a_shadow_gets_copies_and_nobody_its_answers(routed: Routed) -> None:
    stable, shadow = routed.revision(1, 100), routed.revision(2, 0)
    routed.until_confirmed(stable, shadow)
    routed.until_confirmed(stable, replace(shadow, mirror_percent=100))
    for _ in range(5):
        assert routed.http("/v2/models/digits/infer") == (200, "digits-00001")
        assert routed.grpc() == "digits-00001"
    until(lambda: _answered(routed, "digits-00002") == 10, "the shadow got ten copies", _WITHIN_S)


def test_clients_read_configuration_and_statistics_and_make_no_control_call(routed: Routed) -> None:
    """By path and by host, over HTTP and gRPC; the gateway refuses what posts beside the model, and pods the rest."""
    routed.until_confirmed(routed.revision(1, 100))
    host = f"digits.default.{_DOMAIN}"
    read = [f"/v2/models/digits{version}/{what}" for version in ("", "/versions/1") for what in ("config", "stats")]
    for base, by_host in ((_PATH, ""), ("", host)):
        for path in (*read, "/v2/models/stats"):
            assert routed.call("GET", path, base=base, host=by_host) == (200, "digits-00001"), (base, path)
        for method, path in CLOSED_PATHS:
            status, revision = routed.call(method, path, base=base, host=by_host)
            assert status in (403, 404, 405), (base, method, path)
            assert revision == "" or method == "GET" or path.startswith("/v2/models/digits/"), (base, path)
        for method in ("ModelConfig", "ModelStatistics"):
            assert routed.grpc(host=by_host, method=method) == "digits-00001", method
        unknown = routed.grpc(host=by_host, method="NoSuchCall")
        assert unknown in ("UNIMPLEMENTED", "NOT_FOUND")  # what a gateway says of what it has no route for
        for method in CLOSED_METHODS:
            assert routed.grpc(host=by_host, method=method) == unknown, method


def test_weights_are_kept(routed: Routed) -> None:
    routed.until_confirmed(routed.revision(1, 80), routed.revision(2, 20))
    path = "/v2/models/digits/infer"

    def has_weights() -> bool:
        answers = [routed.http(path) for _ in range(300)]
        assert {status for status, _ in answers} == {200}
        return 20 < sum(revision == "digits-00002" for _, revision in answers) < 110  # of 60; six standard deviations

    # What was confirmed is on its way to the data plane, which may have other weights still.
    until(has_weights, "the data plane has the weights", _WITHIN_S)


def test_a_new_service_answers_503_until_it_is_let_in(routed: Routed) -> None:
    path, new = "/v2/models/digits/infer", routed.revision(1, 0)
    with routed.harness.kubelet.paused():
        routed.apply(new)
        until(lambda: routed.http(path)[0] != 404, "the service is routed", _WITHIN_S)
        for _ in range(20):
            assert routed.http(path) == (503, "")
        assert routed.http("/v2/models/digits/versions/1/infer")[0] == 503
        until(lambda: routed.grpc() != "UNIMPLEMENTED", "the service is routed for gRPC", _WITHIN_S)
        assert routed.grpc() == "UNAVAILABLE"
    until(lambda: _ready(routed, "digits-00001"), "its replica is ready", _WITHIN_S)
    assert routed.http(path) == (503, "")
    routed.until_confirmed(replace(new, weight_percent=100))
    assert routed.http(path) == (200, "digits-00001")
    assert routed.grpc() == "digits-00001"


def test_a_revision_whose_replicas_all_died_answers_503(routed: Routed) -> None:
    path, only = "/v2/models/digits/infer", routed.revision(1, 100)
    routed.until_confirmed(only)
    seen = routed.driver.observe("default", "digits").revision("digits-00001")
    assert seen is not None
    with routed.harness.kubelet.paused():  # so that no other replica comes
        routed.harness.kubelet.pod(seen.replicas[0].name).kill()
        with routed.harness.plane.client() as client:
            place = resource_types.POD.path("default", seen.replicas[0].name)
            client.request("DELETE", place, json={"gracePeriodSeconds": 0}).raise_for_status()
        until(lambda: not _ready(routed, "digits-00001"), "nobody is ready", _WITHIN_S)
        routed.driver.apply(Desired("default", "digits", routed.generation, (only,)))
        until(lambda: routed.http(path)[0] == 503, "the gateway knows", _WITHIN_S)
        assert [routed.http(path)[0] for _ in range(20)] == [503] * 20
        assert routed.grpc() == "UNAVAILABLE"
    until(lambda: routed.http(path) == (200, "digits-00001"), "another replica answers", _WITHIN_S)


def _answered(routed: Routed, name: str) -> int:
    """Return how many requests the replicas of a revision have answered."""
    seen = routed.driver.observe("default", "digits").revision(name)
    assert seen is not None
    pages = [routed.driver.metrics_page("default", each) for each in seen.replicas]
    counts = re.findall(r"^nv_inference_request_success\{[^}]*\} (\d+)", "\n".join(pages), re.MULTILINE)
    return sum(int(count) for count in counts)


def _ready(routed: Routed, name: str) -> bool:
    seen = routed.driver.observe("default", "digits").revision(name)
    return seen is not None and seen.ready_replicas > 0
