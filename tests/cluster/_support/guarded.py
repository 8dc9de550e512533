"""A service behind Envoy Gateway, its callers' tokens, and all the ways to call it."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import httpx
import pytest

from access.domain.tokens import Claims, new_signing_key, signed
from integrations.clusters.base import Access, CallerKeys, Desired, DesiredRevision, HeaderMatch, MatchKind
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support.removal import is_removed
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import model, until

WITHIN_S = 60.0
DOMAIN = "models.test"
PRIVATE, PUBLIC = new_signing_key("k1")
NEXT_PRIVATE, NEXT_PUBLIC = new_signing_key("k2")
NOW = datetime.now(UTC)
GOOD = Claims("ci", "1" * 32, "fraud", "", ("default/*",), NOW, NOW + timedelta(days=1))
ANYBODY, GUARDED = None, Access()
RESTRICTED = Access(teams=("fraud",), users=("alice",), keys=("nightly",))


def token(*, private: str = PRIVATE, kid: str = "k1", **changed: Any) -> str:
    return signed(replace(GOOD, **changed), private=private, kid=kid)


KEYS = CallerKeys(public=(PUBLIC, NEXT_PUBLIC), revoked=("2" * 32, *(f"{number:032x}" for number in range(200))))
_INFER, _BETA = "/v2/models/digits/infer", {"x-group": "beta"}
ROUTES: dict[str, tuple[str, str, dict[str, str]]] = {
    # the method, the address, and headers
    "main": ("POST", f"/serving/default/digits{_INFER}", {}),
    "v1": ("POST", "/serving/default/digits/v1/models/digits:predict", {}),
    "version": ("POST", "/serving/default/digits/v2/models/digits/versions/1/infer", {}),
    "group": ("POST", f"/serving/default/digits{_INFER}", _BETA),
    "metadata": ("GET", "/serving/default/digits/v2/models/digits", {}),
    "health": ("GET", "/serving/default/digits/v2/health/ready", {}),
    "preview": ("POST", f"/serving/default/digits-preview{_INFER}", {}),
    "host": ("POST", _INFER, {"host": f"digits.default.{DOMAIN}"}),
    "version by host": ("POST", "/v2/models/digits/versions/2/infer", {"host": f"digits.default.{DOMAIN}"}),
    "preview by host": ("POST", _INFER, {"host": f"digits-preview.default.{DOMAIN}"}),
}
CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "main": ("ModelInfer", {"fairlead-service": "default/digits"}),
    "group": ("ModelInfer", {"fairlead-service": "default/digits", **_BETA}),
    "ready": ("ModelReady", {"fairlead-service": "default/digits"}),
    "preview": ("ModelInfer", {"fairlead-service": "default/digits-preview"}),
}


@dataclass
class Guarded:
    """A service `digits` of two revisions, one of them a group's and at the preview address, and its callers."""

    harness: Harness
    driver: KubernetesDriver
    client: httpx.Client
    generation: int = 0
    revisions: tuple[DesiredRevision, ...] = field(init=False)

    def __post_init__(self) -> None:
        group = (HeaderMatch("x-group", MatchKind.EXACT, ("beta",)),)
        self.revisions = (self._revision(1, 100), self._revision(2, 0, match=group))

    def _revision(self, number: int, weight: int, **more: Any) -> DesiredRevision:
        stored = self.harness.store(model(number))
        name = f"digits-{number:05}"
        return DesiredRevision(name, "digits", str(number), stored.uri, stored.digest, 1, weight, **more)

    def desired(self, access: Access | None, **more: Any) -> Desired:
        """Return the service with these callers; `more` as `Desired` takes it."""
        made = Desired("default", "digits", self.generation, self.revisions, preview="digits-00002", access=access)
        return replace(made, **more)

    def until_confirmed(self, access: Access | None, **more: Any) -> None:
        """Apply again and again, as the reconciler does, until the gateway does what is desired."""
        self.generation += 1

        def look() -> bool:
            self.driver.apply(self.desired(access, **more))
            seen = self.driver.observe("default", "digits")
            weights = {each.name: (each.weight_percent, bool(each.match)) for each in seen.revisions}
            wanted = {"digits-00001": (100, False), "digits-00002": (0, True)}
            return weights == wanted and seen.generation == self.generation and not seen.message

        until(look, "the gateway does what is desired", WITHIN_S)

    def is_gone(self) -> bool:
        return is_removed(self.driver, "digits", self.generation)

    def http(self, route: str, credential: str, **more: str) -> httpx.Response:
        method, path, headers = ROUTES[route]
        bearer = {"authorization": f"Bearer {credential}"} if credential else {}
        return self.client.request(method, path, headers={**headers, **bearer, **more})

    def calls(self) -> list[dict[str, str]]:
        """Return the infer calls that its models got."""
        seen = self.driver.observe("default", "digits")
        pages = [each.metrics_url.removesuffix("/metrics") for revision in seen.revisions for each in revision.replicas]
        return [call for page in pages for call in httpx.get(f"{page}/calls", timeout=20, trust_env=False).json()]

    def grpc(self, channel: grpc.Channel, call: str, credential: str, **more: str) -> str:
        method, metadata = CALLS[call]
        bearer = {"authorization": f"Bearer {credential}"} if credential else {}
        sent = [*{**metadata, **bearer, **more}.items()]
        try:
            channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(b"", metadata=sent, timeout=20)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def until_answered(self, status: int, credential: str, within_s: float = WITHIN_S) -> float:
        """Return after how many seconds all routes answer so."""
        began = time.monotonic()
        found: dict[str, int] = {}

        def look() -> bool:
            found.update({route: self.http(route, credential).status_code for route in ROUTES})
            return {*found.values()} == {status}

        try:
            until(look, f"every route answers {status}", within_s)
        except pytest.fail.Exception:
            pytest.fail(f"not within {within_s:g} s: every route answers {status}, but {found}")
        return time.monotonic() - began
