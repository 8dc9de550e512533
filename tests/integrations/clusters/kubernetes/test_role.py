"""The driver's role is enough for all it does, and for nothing else."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes import api as api_module
from integrations.clusters.kubernetes.api import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
ROLE = Path(api_module.__file__).with_name("role.yaml")
USER, NAMESPACE = "fairlead-driver", "with-a-role"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPTIONS = Options(
    GatewayReference("gateway", "gateways"),
    "fairlead/serving-runtime:test",
    "models",
    "/artifacts",
    custom_metrics=True,
)


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[httpx.Client]:
    """Give an administrator, after they bound the role to the driver's user as the role's file says."""
    with plane.client() as administrator:

        def create(path: str, body: dict[str, object]) -> None:
            administrator.post(f"{path}?fieldValidation=Strict", json=body).raise_for_status()

        create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        roles = list(yaml.safe_load_all(ROLE.read_text()))
        for role in roles:
            create(f"{_RBAC}/clusterroles", role)
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}]
        everywhere = f"{_RBAC}/clusterrolebindings"
        paths = (f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings", everywhere, everywhere)
        for path, role in zip(paths, roles, strict=True):
            name = role["metadata"]["name"]
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            create(path, {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects})
        yield administrator


def test_the_driver_does_all_it_does_with_its_role(client: httpx.Client, plane: ControlPlane) -> None:
    api = Api(plane.user(USER))
    driver = KubernetesDriver(api, OPTIONS)

    def wish(generation: int, *numbers: int, replicas: int) -> None:
        revisions = [
            DesiredRevision(f"digits-{number}", "digits", "1", f"file:///artifacts/{number}", "sha256:0", replicas, 50)
            for number in numbers
        ]
        driver.apply(Desired(NAMESPACE, "digits", generation, tuple(revisions)))

    wish(1, 1, 2, replicas=1)
    wish(2, 2, replicas=3)
    assert [each.name for each in driver.observe(NAMESPACE, "digits").revisions] == ["digits-2"]
    assert driver.inventory().components[0].name == "gateway"
    assert driver.identify("a.b.c") is None
    driver.delete(NAMESPACE, "digits", 3)
    api.close()


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace"),
    [
        pytest.param("get", "", "secrets", NAMESPACE, id="secrets"),
        pytest.param("create", "", "pods", NAMESPACE, id="pods of its own"),
        pytest.param("create", "", "pods/exec", NAMESPACE, id="commands in pods"),
        pytest.param("list", "", "nodes", "", id="nodes"),
        pytest.param("create", "", "serviceaccounts/token", NAMESPACE, id="tokens of pods"),
        pytest.param("create", "authorization.k8s.io", "subjectaccessreviews", "", id="what others may do"),
        pytest.param("create", "rbac.authorization.k8s.io", "rolebindings", NAMESPACE, id="more rights"),
        pytest.param("patch", "gateway.networking.k8s.io", "gateways", "gateways", id="the operator's gateway"),
        pytest.param("patch", "apps", "deployments", "default", id="other namespaces"),
    ],
)
def test_the_driver_may_do_nothing_else(
    verb: str, group: str, resource: str, namespace: str, client: httpx.Client
) -> None:
    resource, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
    review = {"spec": {"user": USER, "resourceAttributes": asked}}
    answer = client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
    answer.raise_for_status()
    assert answer.json()["status"]["allowed"] is False
