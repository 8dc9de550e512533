"""Replicas with a cache of models start and serve without the control plane, its database or Redis."""

from collections.abc import Iterator

import pytest

from tests.cluster._support.installed import (
    MODEL_CACHE,
    NAMESPACE,
    RELEASE,
    WITHIN_S,
    Installed,
    cluster_for_the_chart,
    volume,
)
from tests.cluster._support.node import images
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic, model

pytestmark = pytest.mark.cluster
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: digits, namespace: default}
spec:
  predictor:
    minReplicas: 1
    model: {modelFormat: {name: onnx}, storageUri: models:/digits/1}
"""
REVISION = "digits-00001"
DEPLOYMENT = f"/apis/apps/v1/namespaces/default/deployments/{REVISION}"
AWAY = {
    "the control plane": tuple(f"deployment/{RELEASE}-{part}" for part in ("web", "worker", "watcher", "beat")),
    "its database": (f"statefulset/{RELEASE}-postgresql",),
    # The watcher needs no Redis: it would put back the number of replicas that the test sets.
    "Redis": (f"deployment/{RELEASE}-redis", f"deployment/{RELEASE}-watcher"),
}


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The chart with a cache of models, and a service with one replica."""
    folder = tmp_path_factory.mktemp("away")
    with cluster_for_the_chart(plane, folder, {"first": images.control_plane()}) as made:
        volume(made.api, MODEL_CACHE, namespace="default")
        values = made.values("first")
        more = {
            "settings": {"FAIRLEAD_DEFAULT_ACCESS": "public"},
            "cluster": {**values["cluster"], "modelCache": "1Gi"},
        }
        made.write("my-values.yaml", values | more)
        place = f"--namespace {NAMESPACE}"
        try:
            made.shell.run(
                f"helm install {RELEASE} charts/fairlead {place} --create-namespace --values my-values.yaml "
                "--wait --timeout 10m"
            )
            token = made.manage("token_create", "--name", "first", "--scope", "admin").strip()
            (folder / "model.onnx").write_bytes(model(1))
            (folder / "service.yaml").write_text(SERVICE)
            made.fairlead(token, "models", "push", str(folder / "model.onnx"), "--name", "digits", "--wait")
            made.fairlead(token, "services", "apply", "-f", str(folder / "service.yaml"), "--wait")
            yield made
        except AssertionError as error:
            pytest.fail(f"{error}\n{made.logs()}")
        finally:
            made.shell.run(f"helm uninstall {RELEASE} {place} --no-hooks --ignore-not-found")
            made.api.delete(DEPLOYMENT)


@pytest.mark.parametrize("parts", AWAY.values(), ids=list(AWAY))
def test_replicas_start_and_serve_while_a_part_is_away(installed: Installed, parts: tuple[str, ...]) -> None:
    scale = f"kubectl scale --namespace {NAMESPACE} {' '.join(parts)}"
    before = names_of(installed)
    with Traffic(installed.harness.gateway.url, clients=1) as traffic:
        installed.shell.run(f"{scale} --replicas 0")
        installed.until(lambda: not any(is_there(installed, part) for part in parts), "their end")
        installed.shell.run(f"kubectl scale --namespace default deployment/{REVISION} --replicas 2")
        until_ready(installed, 2)
        (started,) = names_of(installed) - before
        assert "from the cache" in log_of(installed, started), "nothing but the cache has the model now"
        installed.shell.run(f"kubectl delete pod --namespace default --wait=false {' '.join(before)}")
        installed.until(lambda: not before & names_of(installed), "the end of the one that moves")
        until_ready(installed, 2)
        traffic.until_sent(20, within_s=WITHIN_S)
        installed.shell.run(f"{scale} --replicas 1")
        installed.until(lambda: len(names_of(installed)) == 1, "the number of replicas that the control plane knows")
        traffic.until_sent(20, within_s=WITHIN_S)
    assert traffic.failures == []


def is_there(installed: Installed, part: str) -> bool:
    """Return whether a pod of a part is there: a worker that is about to end still sets numbers of replicas."""
    labels = {"labelSelector": f"app.kubernetes.io/component={part.partition(f'{RELEASE}-')[2]}"}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    return bool(installed.api.get(path, params=labels).raise_for_status().json()["items"])


def names_of(installed: Installed) -> set[str]:
    """Return the revision's pods that are not about to end."""
    labels = {"labelSelector": f"fairlead/revision={REVISION}"}
    items = installed.api.get("/api/v1/namespaces/default/pods", params=labels).raise_for_status().json()["items"]
    return {each["metadata"]["name"] for each in items if "deletionTimestamp" not in each["metadata"]}


def until_ready(installed: Installed, count: int) -> None:
    def seen() -> bool:
        status = installed.api.get(DEPLOYMENT).raise_for_status().json()["status"]
        return status.get("readyReplicas", 0) == count

    installed.until(seen, f"{count} replicas are ready")


def log_of(installed: Installed, pod: str) -> str:
    path = f"/api/v1/namespaces/default/pods/{pod}/log"
    return installed.api.get(path, params={"container": "prepare"}).raise_for_status().text
