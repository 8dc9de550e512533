"""Who may call a service behind Envoy Gateway: every route times every credential, and keys that come and go."""

import base64
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import ECKey

from access.domain.tokens import new_signing_key
from access.services.gateways import caller_keys as keys_now
from access.services.gateways import push_to
from access.services.keys import key_create, key_revoke, key_rotate
from accounts.models import Team
from clusters.services.clusters import cluster_apply
from common.errors import InvalidInput
from deployments.models import InferenceService
from deployments.services import service_apply
from integrations.clusters.base import CONSOLE, Access, CallerKeys, DesiredCompanion
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply import caller_keys
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support import explainer
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.guarded import (
    ANYBODY,
    CALLS,
    DOMAIN,
    GOOD,
    GUARDED,
    KEYS,
    NEXT_PRIVATE,
    NEXT_PUBLIC,
    NOW,
    PRIVATE,
    PUBLIC,
    RESTRICTED,
    ROUTES,
    WITHIN_S,
    Guarded,
    token,
)
from tests.cluster._support.kubeconfigs import flat
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import UNRULY_RUNTIME, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.deployments._support.cluster_files import LEAST
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
OTHER_PRIVATE, _ = new_signing_key("k1")
PORT = 8090  # at 8080 of every address Envoy Gateway serves its metrics
EXPLAINER = DesiredCompanion("example.org/occlusion:1", 1, http_port=PORT)
BASE, HOST = "/serving/default/digits", {"host": f"digits.default.{DOMAIN}"}
EXPLAINED: tuple[tuple[str, dict[str, str]], ...] = (
    (f"{BASE}/v1/models/digits:explain", {}),
    (f"{BASE}/v2/models/digits/explain", {}),
    ("/v1/models/digits:explain", HOST),
    ("/v2/models/digits/explain", HOST),
)
BENT = (
    *("/v1/models/digits%3Aexplain", "/v1/models/digits%3aexplain", "/v1/models/digits%00:explain"),
    *("/v1/models//digits:explain", "//v1/models/digits:explain", "/v1/models/digits:explain/"),
    *("/v1/models/x/../digits:explain", "/v1/models/x/%2e%2e/digits:explain", "/v1/models/digits:explain;x"),
    *("/v1/models/digits:explain?x=1", "/v1/models/digits:EXPLAIN", "/v2/models/digits/%65xplain"),
    *("/v2/models/digits//explain", "/v2/models/digits/versions/1/explain"),
)
"""What other programs could read as an explain request."""
OK, UNAUTHENTICATED, DENIED = (200, "OK"), (401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED")


def said(**claims: str) -> str:
    """Return a token with claims that no installation would sign."""
    key = ECKey.import_key(json.loads(PRIVATE))
    return jwt.encode({"alg": "ES256", "kid": "k1"}, {**GOOD.json(), **claims}, key, ["ES256"])


def altered(**claims: Any) -> str:
    """Return a good token whose content was changed after it was signed."""
    head, _, signature = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps({**GOOD.json(), **claims}).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


CREDENTIALS: dict[str, tuple[str, tuple[int, str], tuple[int, str]]] = {
    # the token, the outcome for an authenticated service, and for a restricted one
    "none": ("", UNAUTHENTICATED, UNAUTHENTICATED),
    "valid": (token(), OK, OK),
    "for every service": (token(services=("*",)), OK, OK),
    "for this service": (token(services=("prod/x", "default/digits")), OK, OK),
    "for names that begin so": (token(services=("default/dig*",)), OK, OK),
    "signed by the next key": (token(private=NEXT_PRIVATE, kid="k2"), OK, OK),
    "of another service": (token(services=("default/other",)), DENIED, DENIED),
    "of another namespace": (token(services=("prod/*", "prod/digits")), DENIED, DENIED),
    "for a longer name": (token(services=("default/digits-2", "default/digits-*")), DENIED, DENIED),
    "of another team": (token(team="risk", key="batch"), OK, DENIED),
    "of a user": (token(team="risk", key="batch", user="alice"), OK, OK),
    "named": (token(team="risk", key="nightly"), OK, OK),
    "of the console": (token(team="", key=CONSOLE, services=("default/digits",)), OK, OK),
    "revoked": (token(token_id="2" * 32), DENIED, DENIED),
    "revoked among many": (token(token_id=f"{150:032x}"), DENIED, DENIED),
    "expired": (token(expires_at=NOW - timedelta(hours=1)), UNAUTHENTICATED, UNAUTHENTICATED),
    "signed by somebody else": (token(private=OTHER_PRIVATE), UNAUTHENTICATED, UNAUTHENTICATED),
    "altered": (altered(services=["*"]), UNAUTHENTICATED, UNAUTHENTICATED),
    "of another audience": (said(aud="fairlead-api"), DENIED, DENIED),
    "of another issuer": (said(iss="elsewhere"), UNAUTHENTICATED, UNAUTHENTICATED),
    "wrong": ("flt_abc", UNAUTHENTICATED, UNAUTHENTICATED),
}


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("access")
    proxy = ServiceProxy(plane)

    def explains(argv: Sequence[str], ip: str) -> Sequence[str]:
        flags = dict(word.removeprefix("--").split("=", 1) for word in argv)
        own = {**flags, "predictor_host": proxy.resolve(flags["predictor_host"]), "address": ip, "http_port": str(PORT)}
        return [sys.executable, explainer.__file__, *(f"--{name}={value}" for name, value in own.items())]

    images = {EXPLAINER.image: explains}
    try:
        with harness(plane, folder, runtime=UNRULY_RUNTIME, images=images, gateway_of=EnvoyGateway) as running:
            yield running
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def guarded(cluster: Harness) -> Iterator[Guarded]:
    """Give a service that came up behind its policy."""
    driver = KubernetesDriver(cluster.api, replace(cluster.options, domain=DOMAIN))
    with httpx.Client(base_url=cluster.gateway.url, timeout=20, trust_env=False) as client:
        service = Guarded(cluster, driver, client)
        yield service
        service.generation += 1
        until(service.is_gone, "the service is gone", WITHIN_S)


def test_a_service_of_the_platform_asks_for_keys_that_its_own_api_made(
    db: None, cluster: Harness, plane: ControlPlane
) -> None:
    """From a service file, by the reconciler and the sweep of keys, to the deletion of it all."""
    platform = OnKubernetes(harness=cluster)
    platform.version(1)
    platform.policy(name="quick", steps=[{"weight": 50}])
    document = platform.document(policy="quick")
    document["spec"]["access"] = {"keys": ["ci"]}
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    registered, _ = cluster_apply(
        document={**LEAST, "connection": {"kubeconfig": flat(plane.kubeconfig)}},
        name=None,
        actor="alice",
        now=timezone.now(),
    )
    InferenceService.objects.update(cluster=registered)
    platform.until_so(lambda: platform.view().phase == "Ready")
    team, far = Team.objects.get(name="default"), timedelta(days=1)
    made = {
        name: key_create(
            name=name, team=team, user=None, services=["*"], lifetime=far, actor="alice", now=timezone.now()
        ).token
        for name in ("ci", "other")
    }

    def answers(token: str) -> int:
        method, path, headers = ROUTES["main"]
        sent = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}
        url = f"{cluster.gateway.url}{path}"
        return httpx.request(method, url, headers=sent, timeout=20, trust_env=False).status_code

    def push() -> None:
        push_to(registered, keys_now(now=timezone.now()), clock=timezone.now)

    push()
    until(lambda: answers(made["ci"]) == 200, "the key is valid", 5)
    assert (answers(made["other"]), answers("")) == (403, 401)
    rotated = key_rotate(name="ci", overlap=timedelta(0), actor="alice", now=timezone.now()).token
    push()
    until(lambda: answers(made["ci"]) == 403, "the token of before is refused", 5)
    assert answers(rotated) == 200
    key_revoke(name="ci", actor="alice", now=timezone.now())
    push()
    until(lambda: answers(rotated) == 403, "the revoked key is refused", 5)
    platform.remove()
    for kind in (*resource_types.ROUTES, *resource_types.POLICIES):
        assert cluster.api.list(kind, "default", {}) == []


def test_nobody_without_a_key_is_answered_while_the_service_comes_up(guarded: Guarded) -> None:
    """The policy is in force before a route leads to a model; keys may come later, until when no token is valid."""
    seen: Counter[tuple[str, int]] = Counter()
    done = threading.Event()

    def knock() -> None:
        with httpx.Client(base_url=guarded.harness.gateway.url, timeout=20, trust_env=False) as client:
            while not done.is_set():
                for route in ("main", "version", "group", "preview"):
                    method, path, headers = ROUTES[route]
                    seen[route, client.request(method, path, headers=headers).status_code] += 1

    visitor = threading.Thread(target=knock)
    visitor.start()
    try:
        guarded.driver.apply(replace(guarded.desired(GUARDED), generation=1))
        held = guarded.harness.api.list(resource_types.HTTP_ROUTE, "default", {})
        assert {each["metadata"]["name"] for each in held} == {"digits", "digits-host"}, "no other leads to a model yet"
        guarded.until_confirmed(GUARDED)
        guarded.until_answered(401, token())
        guarded.driver.apply_keys(KEYS, ["default"])
        guarded.until_answered(200, token(), within_s=5)
    finally:
        done.set()
        visitor.join()
    assert {status for _, status in seen} <= {404, 503, 401, 403}, seen
    assert min(seen[route, 401] for route in ("main", "version", "group", "preview")) > 0, seen


@pytest.mark.parametrize("access", [GUARDED, RESTRICTED], ids=["authenticated", "restricted"])
def test_every_credential_over_every_route(guarded: Guarded, access: Access) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(access)
    guarded.until_answered(403 if access == RESTRICTED else 200, CREDENTIALS["of another team"][0])
    wrong = []
    with grpc.insecure_channel(urlsplit(guarded.harness.gateway.url).netloc) as channel:
        for name, (credential, *outcomes) in CREDENTIALS.items():
            status, code = outcomes[access == RESTRICTED]
            for route in ROUTES:
                answer = guarded.http(route, credential)
                is_v2 = status == 200 or "key" in answer.json().get("error", "")
                if answer.status_code != status or not is_v2:
                    wrong.append((name, route, answer.status_code, status, answer.text))
            for call in CALLS:
                found = guarded.grpc(channel, call, credential)
                if found != code:
                    wrong.append((name, call, found, code))
    assert wrong == []


def test_the_model_gets_the_callers_name_and_never_the_token(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(GUARDED)
    guarded.until_answered(200, token())
    forged = {"fairlead-caller": "admin", "fairlead-key": "3" * 32}
    for route in ROUTES:
        got = guarded.http(route, token(), **forged).json()["headers"]
        assert (got["fairlead-caller"], got["fairlead-key"]) == ("ci", "1" * 32), route
        assert "authorization" not in got, route


def test_an_explainer_is_reached_with_a_valid_key_alone(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    stable, canary = guarded.revisions
    guarded.until_confirmed(GUARDED, revisions=(replace(stable, explainer=EXPLAINER), canary))

    def posted(path: str, credential: str, headers: dict[str, str]) -> httpx.Response:
        bearer = {"authorization": f"Bearer {credential}"} if credential else {}
        return guarded.client.post(path, json={"instances": [[1, 2]]}, headers={**headers, **bearer})

    def is_explained() -> bool:
        return all("explanations" in posted(path, token(), headers).text for path, headers in EXPLAINED)

    until(is_explained, "every address of the explainer answers", WITHIN_S)
    for name, (credential, (status, _), _) in CREDENTIALS.items():
        found = {posted(path, credential, headers).status_code for path, headers in EXPLAINED}
        assert found == {status}, name
        for path in BENT if status != 200 else ():
            answer = posted(f"{BASE}{path}", credential, {})
            assert answer.status_code >= 300, (name, path)
            assert "explanations" not in answer.text, (name, path)
    forged = {"fairlead-caller": "admin", "fairlead-key": "3" * 32}
    for path, headers in EXPLAINED:
        got = {
            name.lower(): value
            for name, value in posted(path, token(), {**headers, **forged}).json()["headers"].items()
        }
        assert (got["fairlead-caller"], got["fairlead-key"]) == ("ci", "1" * 32), path
        assert "authorization" not in got, path


def test_a_shadow_gets_copies_without_the_token(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(GUARDED)
    guarded.generation += 1
    stable, shadow = guarded.revisions
    mirrored = (stable, replace(shadow, match=(), mirror_percent=100))
    with_copies = replace(guarded.desired(GUARDED), revisions=mirrored, preview="")

    def copies() -> list[dict[str, str]]:
        guarded.driver.apply(with_copies)
        guarded.http("main", token(), **{"x-copied": "yes"})
        seen = guarded.driver.observe("default", "digits").revision("digits-00002")
        assert seen is not None
        pages = [replica.metrics_url.removesuffix("/metrics") + "/calls" for replica in seen.replicas]
        calls = [call for page in pages for call in httpx.get(page, timeout=20, trust_env=False).json()]
        return [call for call in calls if "x-copied" in call]

    for copy in until(copies, "the shadow got a copy", WITHIN_S):
        assert "authorization" not in copy
        assert copy["fairlead-caller"] == "ci"


def test_revocations_and_new_keys_are_in_force_within_five_seconds_of_their_push(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(GUARDED)
    guarded.until_answered(200, token())
    guarded.driver.apply_keys(replace(KEYS, revoked=("1" * 32,)), ["default"])
    guarded.until_answered(403, token(), within_s=5)
    guarded.driver.apply(guarded.desired(GUARDED))  # the reconciler keeps what was pushed
    assert guarded.driver.apply(guarded.desired(GUARDED)) == []
    assert guarded.http("main", token()).status_code == 403
    guarded.driver.apply_keys(replace(KEYS, public=(NEXT_PUBLIC,), revoked=()), ["default"])
    guarded.until_answered(401, token(), within_s=5)
    assert guarded.http("main", CREDENTIALS["signed by the next key"][0]).status_code == 200


def test_a_policy_that_is_deleted_or_changed_by_hand_comes_back(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(GUARDED)
    path = resource_types.SECURITY_POLICY.path("default", "digits")
    with guarded.harness.plane.client() as admin:
        headers = {"content-type": "application/merge-patch+json"}
        changes = {"spec": {"authorization": {"defaultAction": "Allow"}}}
        admin.patch(f"{path}?fieldManager=kubectl-edit", json=changes, headers=headers).raise_for_status()
        (changed,) = guarded.driver.apply(guarded.desired(GUARDED))
        assert (changed.object, changed.path, changed.healed) == (
            "SecurityPolicy/digits",
            "spec.authorization.defaultAction",
            True,
        )
        admin.delete(path).raise_for_status()
        (missing,) = guarded.driver.apply(guarded.desired(GUARDED))
        assert (missing.object, missing.healed) == ("SecurityPolicy/digits", True)
    guarded.until_answered(401, "")


def test_a_service_that_becomes_public_has_no_policy(guarded: Guarded) -> None:
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(ANYBODY)
    guarded.until_answered(200, "")
    assert guarded.http("main", "of-the-models-own").json()["headers"]["authorization"] == "Bearer of-the-models-own"
    for kind in resource_types.POLICIES:
        assert guarded.harness.api.list(kind, "default", {}) == []
    guarded.until_confirmed(GUARDED)
    guarded.until_answered(401, "")


def test_keys_that_somebody_else_wrote_are_used_only_where_they_are_keys(guarded: Guarded) -> None:
    """Envoy would reject its listener as a whole for a key that is none, and so a revocation of another service."""
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_confirmed(GUARDED)
    off_the_curve = {**PUBLIC, "x": PUBLIC["y"]}
    written = {"public": [off_the_curve, {"kty": "EC"}, "text", PUBLIC], "revoked": ['"]', "1" * 32]}
    path = resource_types.CONFIG_MAP.path("default", caller_keys.NAME)
    with guarded.harness.plane.client() as admin:
        headers = {"content-type": "application/merge-patch+json"}
        for content in (json.dumps(written), "[]", "{"):
            admin.patch(path, json={"data": {"keys": content}}, headers=headers).raise_for_status()
            read = caller_keys.read(guarded.harness.api, "default")
            assert read == (CallerKeys(public=(PUBLIC,), revoked=("1" * 32,)) if len(content) > 2 else CallerKeys())
            guarded.driver.apply(guarded.desired(GUARDED))
            guarded.until_answered(403 if len(content) > 2 else 401, token())
    guarded.driver.apply_keys(KEYS, ["default"])
    guarded.until_answered(200, token(), within_s=5)


def test_a_gateway_of_another_kind_is_refused_by_name(guarded: Guarded) -> None:
    elsewhere = replace(guarded.harness.options, gateway=replace(guarded.harness.options.gateway, name="absent"))
    with pytest.raises(InvalidInput, match="digits is not public, but gateway absent was not found") as refused:
        KubernetesDriver(guarded.harness.api, elsewhere).check(guarded.desired(GUARDED))
    assert refused.value.field == "spec.access"
