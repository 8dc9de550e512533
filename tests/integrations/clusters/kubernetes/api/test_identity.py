"""Whose a token is, by what a TokenReview answers and by a real API server."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from integrations.clusters.base import WorkloadIdentity
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.identity import identity_of
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.cluster.plane import ControlPlane

NAMESPACE = "with-tokens"
POD = {"authentication.kubernetes.io/pod-name": ["digits-1-abc"]}
GOOD = {
    "authenticated": True,
    "audiences": ["fairlead"],
    "user": {"username": "system:serviceaccount:default:digits", "extra": POD},
}


def test_a_pods_token_says_who_it_is() -> None:
    assert identity_of({"status": GOOD}) == WorkloadIdentity("default", "digits", "digits-1-abc")


def test_a_token_for_records_alone_is_good_for_no_more() -> None:
    found = identity_of({"status": {**GOOD, "audiences": ["fairlead-records"]}})
    assert found == WorkloadIdentity("default", "digits", "digits-1-abc", records_only=True)
    both = identity_of({"status": {**GOOD, "audiences": ["fairlead-records", "fairlead"]}})
    assert both == WorkloadIdentity("default", "digits", "digits-1-abc")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"authenticated": False}, id="nobody's"),
        pytest.param({"audiences": ["https://kubernetes.default.svc"]}, id="for somebody else"),
        pytest.param({"audiences": []}, id="for nobody in particular"),
        pytest.param({"user": {**GOOD["user"], "extra": {}}}, id="of no pod"),  # type: ignore[dict-item]
        pytest.param({"user": {**GOOD["user"], "username": "alice"}}, id="a person's"),  # type: ignore[dict-item]
    ],
)
def test_any_other_token_is_nobodys(changed: dict[str, Any]) -> None:
    assert identity_of({"status": {**GOOD, **changed}}) is None


def test_an_answer_without_a_status_is_nobodys() -> None:
    assert identity_of({}) is None


@dataclass
class Place:
    """A service account and a pod that runs under it."""

    driver: KubernetesDriver
    client: httpx.Client
    pod: dict[str, Any]

    def token(self, *, audience: str = "fairlead", bound: bool = True) -> str:
        spec: dict[str, Any] = {"audiences": [audience], "expirationSeconds": 600}
        if bound:
            metadata = self.pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/digits/token"
        answer = self.client.post(path, json={"spec": spec})
        answer.raise_for_status()
        return str(answer.json()["status"]["token"])


@pytest.fixture(scope="module")
def place(plane: ControlPlane) -> Iterator[Place]:
    api = Api(plane.kubeconfig)
    options = Options(GatewayReference("gateway", "gateways"), "image", "models", "/artifacts")
    with plane.client() as client:

        def create(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = client.post(f"/api/v1/namespaces{path}", json=body)
            answer.raise_for_status()
            return dict(answer.json())

        create("", {"metadata": {"name": NAMESPACE}})
        create(f"/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "digits"}})
        containers = [{"name": "runtime", "image": "image"}]
        spec = {"serviceAccountName": "digits", "automountServiceAccountToken": False, "containers": containers}
        pod = create(f"/{NAMESPACE}/pods", {"metadata": {"name": "digits-1-abc"}, "spec": spec})
        yield Place(KubernetesDriver(api, options), client, pod)
    api.close()


@pytest.mark.cluster
def test_the_api_server_vouches_for_a_pod_and_for_nobody_else(place: Place) -> None:
    good = place.token()
    assert place.driver.identify(good) == WorkloadIdentity(NAMESPACE, "digits", "digits-1-abc")
    records = place.driver.identify(place.token(audience="fairlead-records"))
    assert records == WorkloadIdentity(NAMESPACE, "digits", "digits-1-abc", records_only=True)
    assert place.driver.identify(place.token(audience="https://elsewhere.example.org")) is None
    assert place.driver.identify(place.token(bound=False)) is None
    assert place.driver.identify(f"{good[:-4]}AAAA") is None
    assert place.driver.identify("a.b.c") is None

    place.client.request(
        "DELETE",
        f"/api/v1/namespaces/{NAMESPACE}/pods/digits-1-abc",
        content=json.dumps({"gracePeriodSeconds": 0}),
        headers={"content-type": "application/json"},
    ).raise_for_status()
    deadline = time.monotonic() + 120  # the API server remembers for ten seconds that it was good
    while place.driver.identify(good) is not None:
        assert time.monotonic() < deadline, "a token outlived its pod"
        time.sleep(0.1)
