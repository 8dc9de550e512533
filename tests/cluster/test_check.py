"""The check of a cluster on a real API server: what is there, what is missing, and what to do."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import yaml

from common.errors import Conflict
from integrations.clusters.base import Finding
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.access import Credentials
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply.gpu_nodes import CONFIG_MAP, KEY
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import ClosedNetwork, GatewayReference, Options, Repartition
from integrations.clusters.kubernetes.rbac import IN_NAMESPACES, roles_of_the_cluster
from tests.cluster.plane import ControlPlane
from tests.servers.parts import free_port

pytestmark = pytest.mark.cluster
OPTIONS = Options(GatewayReference("nowhere", "gateways"), "image", "models", "/artifacts")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_numbers = itertools.count(1)


def found(driver: KubernetesDriver, *namespaces: str) -> dict[str, Finding]:
    return {finding.about: finding for finding in driver.findings(namespaces)}


@contextmanager
def role_bound(client: httpx.Client, user: str, namespace: str) -> Iterator[None]:
    """Give a user the driver's role in a namespace for a while, as the remedy says."""
    roles = yaml.safe_load_all(Path(rbac.__file__).with_name("role.yaml").read_text())
    role = next(each for each in roles if each["metadata"]["name"] == IN_NAMESPACES)
    role = {**role, "metadata": {"name": f"checked-{namespace}"}}
    client.post(f"{_RBAC}/clusterroles", json=role).raise_for_status()
    binding = {
        "metadata": {"name": "checked"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"checked-{namespace}",
        },
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    client.post(f"{_RBAC}/namespaces/{namespace}/rolebindings", json=binding).raise_for_status()
    yield
    client.delete(f"{_RBAC}/clusterroles/checked-{namespace}").raise_for_status()


def test_an_administrator_may_do_everything_and_is_told_what_is_missing(plane: ControlPlane) -> None:
    api = Api(plane.kubeconfig)
    findings = found(KubernetesDriver(api, OPTIONS), "default", "not-there")
    api.close()
    assert findings["API server"].ok
    assert findings["API server"].message.startswith("Kubernetes v1.")
    assert findings["Gateway API"].ok
    assert not findings["Gateway"].ok
    assert "there is no Gateway nowhere in gateways" in findings["Gateway"].message
    assert findings["namespace default"].ok
    assert findings["namespace not-there"].message == "there is no namespace not-there"
    assert "kubectl create namespace not-there" in findings["namespace not-there"].remedy
    assert all(findings[f"role {role}"].ok for role in roles_of_the_cluster())


def test_the_namespace_for_jobs_has_to_be_there(plane: ControlPlane) -> None:
    api = Api(plane.kubeconfig)
    driver = KubernetesDriver(api, replace(OPTIONS, jobs_namespace="asking"))
    jobs = found(driver)["role fairlead-driver-jobs"]
    assert (jobs.ok, jobs.message) == (False, "there is no namespace asking, in which model jobs run")
    assert "kubectl create namespace asking" in jobs.remedy
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "asking"}}).raise_for_status()
        assert found(driver)["role fairlead-driver-jobs"].ok
        assert client.get(resource_types.JOB.path("asking")).json()["items"] == [], "it was tried, not made"
    api.close()


def test_what_is_known_of_the_network_of_models_is_said(plane: ControlPlane) -> None:
    api = Api(plane.kubeconfig)
    closed = replace(OPTIONS, jobs_namespace="default", network=ClosedNetwork())
    about = "network of models"
    opened, shut = found(KubernetesDriver(api, OPTIONS))[about], found(KubernetesDriver(api, closed))[about]
    api.close()
    assert (opened.ok, shut.ok) == (True, True)
    assert "network of the cluster file closes it" in opened.message
    assert "the API does not say whether the cluster's network plugin enforces them" in shut.message
    api = Api(plane.user(f"nobody-{next(_numbers)}"))
    lacking = found(KubernetesDriver(api, closed))[about]
    api.close()
    assert "create networkpolicies.networking.k8s.io" in lacking.message
    assert "bind ClusterRole fairlead-driver-jobs-network of role.yaml with a RoleBinding in default" in lacking.remedy


def test_who_may_nothing_is_told_which_rights_and_which_role_to_bind(plane: ControlPlane) -> None:
    api = Api(plane.user(f"nobody-{next(_numbers)}"))
    findings = found(KubernetesDriver(api, OPTIONS), "default")
    api.close()
    here = findings["namespace default"]
    assert here.message.startswith("not permitted in default: get configmaps, create configmaps, patch configmaps")
    assert "bind ClusterRole fairlead-driver of role.yaml with a RoleBinding in default" in here.remedy
    identity = findings["role fairlead-driver-identity"]
    assert identity.message == "not permitted: create tokenreviews.authentication.k8s.io"
    assert not findings["role fairlead-driver-gateways"].ok
    assert findings["Gateway"].message == "Gateway nowhere in gateways may not be read"
    assert "bind ClusterRole fairlead-driver-gateways" in findings["Gateway"].remedy
    assert "kubectl create namespace fairlead-jobs" in findings["role fairlead-driver-jobs"].remedy
    assert findings["API server"].ok


def test_what_cutting_nodes_takes_is_looked_at_where_the_file_allows_it(plane: ControlPlane) -> None:
    options = replace(OPTIONS, repartition=Repartition("default"))
    for kubeconfig, may in ((plane.kubeconfig, True), (plane.user(f"nobody-{next(_numbers)}"), False)):
        api = Api(kubeconfig)
        findings = found(KubernetesDriver(api, options), "default")
        api.close()
        assert findings["role fairlead-driver-repartition"].ok is may
        assert findings["role fairlead-driver-repartition-mig"].ok is may
    assert findings["role fairlead-driver-repartition"].message == "not permitted: patch nodes"
    mig = findings["role fairlead-driver-repartition-mig"]
    assert "get configmaps fairlead-mig-parted-config" in mig.message
    assert "fairlead-driver-repartition-mig of role.yaml with a RoleBinding in default" in mig.remedy
    with plane.client() as client:
        api = Api(plane.kubeconfig)
        assert "there is no ConfigMap" in found(KubernetesDriver(api, options))["MIG manager's file"].message
        body = {"metadata": {"name": CONFIG_MAP}, "data": {KEY: "version: v1\nmig-configs: {}"}}
        client.post(resource_types.CONFIG_MAP.path("default"), json=body).raise_for_status()
        assert found(KubernetesDriver(api, options))["MIG manager's file"].ok
        client.delete(resource_types.CONFIG_MAP.path("default", CONFIG_MAP)).raise_for_status()
        api.close()


def test_the_bound_role_is_found_and_only_where_it_is_bound(plane: ControlPlane) -> None:
    user, namespace = f"driver-{next(_numbers)}", "checked"
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
        with role_bound(client, user, namespace):
            api = Api(plane.user(user))
            driver = KubernetesDriver(api, OPTIONS)
            findings = found(driver, "default", namespace)
            assert findings[f"namespace {namespace}"].ok, findings[f"namespace {namespace}"]
            assert not findings["namespace default"].ok
            driver.check_namespace(namespace)
            with pytest.raises(Conflict, match=r"not permitted in default: .*; bind ClusterRole fairlead-driver"):
                driver.check_namespace("default")
            api.close()


def test_a_server_that_is_not_there_is_one_finding() -> None:
    api = Api(Credentials(f"https://127.0.0.1:{free_port()}", token="secret"))
    [finding] = KubernetesDriver(api, OPTIONS).findings(["default"])
    assert not finding.ok
    assert "does not answer" in finding.message
    assert "web and worker reach the address" in finding.remedy


def test_credentials_that_the_server_does_not_know(plane: ControlPlane) -> None:
    authority = yaml.safe_load(plane.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority"]
    api = Api(Credentials(plane.url, authority=Path(authority).read_text(), token="nobody-s"))
    [finding] = KubernetesDriver(api, OPTIONS).findings(["default"])
    assert (finding.about, finding.ok, finding.remedy) == (
        "API server",
        False,
        "apply the cluster file with new credentials",
    )
