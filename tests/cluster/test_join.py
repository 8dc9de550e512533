"""`fairlead clusters join` with kubectl, on two clusters from nothing: one control plane then serves both.

What is left of the services goes with the clusters' harness.
"""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts.domain.scopes import Scope
from accounts.services import token_create, user_get_or_create
from clusters.models import Cluster
from clusters.services.connection import driver_of
from clusters.services.credential_expiry import expiries
from deployments.models import InferenceService, Rollout
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outside
from deployments.services import rollout_start, service_apply
from fairlead_cli.__main__ import main
from integrations.clusters.kubernetes.manifests.names import SERVICE
from integrations.metrics import counters
from tests.cluster import binaries
from tests.cluster._support.gateway import gateway_api
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import CLAIM, IMAGE, Harness, harness
from tests.cluster.plane import ControlPlane, control_plane
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster
_HOUR = timedelta(hours=1)
_WITHIN_S = 180.0
_ON = {"digits": "eu", "numbers": "us"}
Join = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def second() -> Iterator[ControlPlane]:
    """Give another API server, with nothing of the first one's."""
    with control_plane() as plane:
        gateway_api.install(plane)
        yield plane


@pytest.fixture
def join(
    transactional_db: None,
    live_server: LiveServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Join:
    """Return what runs `clusters join` against this control plane, with a cluster's administrator as kubectl's user."""
    try:
        kubectl = binaries.kubectl()
    except MissingPartError as missing:
        skip_or_fail(missing)
    (tmp_path / "kubectl").symlink_to(kubectl)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    now = timezone.now()
    user = user_get_or_create(username="alice", now=now)
    made = token_create(user=user, name="join", scope=Scope.ADMIN, lifetime=_HOUR, now=now, actor="test")
    monkeypatch.setenv("FAIRLEAD_URL", live_server.url)
    monkeypatch.setenv("FAIRLEAD_TOKEN", made.secret)

    def run(name: str, on: Harness, root: str, *words: str) -> tuple[int, str]:
        gateway = on.gateway.reference
        file = {
            "gateway": {"url": on.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
            "runtimeImage": IMAGE,
            "artifacts": {"claim": CLAIM, "root": root},
            "jobs": {"namespace": "default"},
            "drain": "5s",
            "preStop": "1s",
        }
        place = tmp_path / f"{name}.yaml"
        place.write_text(json.dumps(file))
        monkeypatch.setenv("KUBECONFIG", str(on.plane.kubeconfig))
        capsys.readouterr()
        code = main(["clusters", "join", name, "-f", str(place), "--namespace", "default", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


@pytest.fixture
def clusters(cluster: Harness, second: ControlPlane, tmp_path: Path) -> Iterator[dict[str, Harness]]:
    """Give two clusters, whose nodes have the same model files; what joining made of the first one's is removed."""
    (tmp_path / "second").mkdir()
    with harness(second, tmp_path / "second", claims={CLAIM: cluster.artifacts.folder}) as other:
        yield {"eu": cluster, "us": other}
    with cluster.plane.client() as client:
        for kind in ("clusterroles", "clusterrolebindings", "namespaces/default/rolebindings"):
            path = f"/apis/rbac.authorization.k8s.io/v1/{kind}"
            for each in client.get(path).json()["items"]:
                if each["metadata"]["name"].startswith("fairlead-"):
                    client.delete(f"{path}/{each['metadata']['name']}").raise_for_status()
        client.delete("/api/v1/namespaces/fairlead-access").raise_for_status()


def test_one_control_plane_serves_two_clusters_that_joined_it(
    join: Join, clusters: dict[str, Harness], second: ControlPlane
) -> None:
    root = str(clusters["eu"].artifacts.folder)
    for name, each in clusters.items():
        code, said = join(name, each, root, "--apply", "--token-lifetime", "1h")
        missing = [line.split()[:2] for line in said.splitlines() if line.startswith("no ")]
        assert (code, missing) == (1, [["no", "token"]]), said
        code, said = join(name, each, root, "--register")  # for a token that lasts
        assert code == 0, said
    rows = {row.name: row for row in Cluster.objects.filter(name__in=clusters)}
    for row in rows.values():
        [token] = [each for each in expiries(row) if each.kind == "token"]
        assert timedelta(0) < token.at - timezone.now() <= timedelta(days=366)

    platform = OnKubernetes(harness=clusters["eu"])
    platform.version(1)
    platform.version(2)
    platform.policy(name="by-weight", steps=[{"weight": 50, "hold": "1s"}], scaleDownDelay="1s")
    for service, cluster in _ON.items():
        document = platform.document(policy="by-weight")
        document["metadata"]["name"], document["spec"]["cluster"] = service, cluster
        service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    _until(platform, rows, lambda: _phases() == {"Ready"})
    _until(platform, rows, lambda: all(_answers(clusters[on], name) == [1, 2, 3, 4] for name, on in _ON.items()))
    for service in _ON:
        rollout_start(
            namespace="default", name=service, version="2", policy="by-weight", actor="alice", now=platform.clock()
        )
    _until(platform, rows, lambda: set(Rollout.objects.values_list("phase", flat=True)) == {"Healthy"})
    _until(platform, rows, lambda: all(_answers(clusters[on], name) == [2, 4, 6, 8] for name, on in _ON.items()))
    assert {name: _services(each) for name, each in clusters.items()} == {"eu": {"digits"}, "us": {"numbers"}}


def _until(platform: OnKubernetes, rows: dict[str, Cluster], look: Callable[[], bool]) -> None:
    """Turn to both services, each on its own cluster by the stored credentials, until it is so."""
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        assert time.monotonic() < deadline, [str(each.reason) for each in InferenceService.objects.all()]
        platform.clock.go_on(1.0)
        for service in InferenceService.objects.select_related("cluster"):
            driver = driver_of(rows[service.cluster.name])
            outside = Outside(driver, partial(counters.collect, page_of=driver.metrics_page), platform.clock)
            reconciler.tick(service.pk, outside)
        time.sleep(0.3)


def _phases() -> set[str]:
    return set(InferenceService.objects.values_list("phase", flat=True))


def _answers(on: Harness, service: str) -> object:
    """Return what a cluster's gateway answers for a service; None without an answer."""
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    url = f"{on.gateway.url}/serving/default/{service}/v2/models/{service}/infer"
    try:
        answer = httpx.post(url, json=body, timeout=10, trust_env=False)
        return answer.json()["outputs"][0]["data"] if answer.status_code == 200 else None
    except httpx.HTTPError:
        return None


def _services(on: Harness) -> set[str]:
    """Return the services that a cluster has pods of."""
    with on.plane.client() as client:
        items = client.get("/api/v1/namespaces/default/pods").json()["items"]
    return {each["metadata"]["labels"][SERVICE] for each in items}
