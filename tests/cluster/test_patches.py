"""A service file with patches on a real API server: what it is told before anything is saved."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from clusters.services.connection import driver_of
from clusters.services.trial import cluster_patches_try
from common.errors import InvalidInput
from deployments.models import InferenceService
from deployments.services import plan_patched, service_plan
from integrations.clusters.kubernetes.api import resource_types
from tests.cluster.plane import ControlPlane
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.cluster


def file(plane: ControlPlane, **changed: Any) -> dict[str, Any]:
    """Return a file of the test's own cluster."""
    return {
        "name": "production",
        "kind": "kubernetes",
        "connection": {"kubeconfigPath": str(plane.kubeconfig.resolve())},
        "gateway": {"name": "gateway", "namespace": "gateways", "url": "https://models.example.com"},
        "runtimeImage": "fairlead/serving-runtime:test",
        "artifacts": {"claim": "models", "root": "/artifacts"},
        "servicePatches": True,
        **changed,
    }


@pytest.fixture
def platform(db: None, plane: ControlPlane, settings: Settings) -> Platform:
    """Give a platform whose default cluster is the test's own, and allows services patches."""
    settings.KUBECONFIG_FOLDER = plane.folder.resolve()
    settings.DEFAULT_CLUSTER = "production"
    platform = Platform()
    document = file(plane)
    Cluster.objects.create(name="production", kind="kubernetes", document=document, created_at=platform.clock())
    platform.version(1)
    return platform


def told(platform: Platform, kind: str, **merge: Any) -> str:
    document = platform.document(policy=None)
    document["spec"]["patches"] = [{"target": {"kind": kind}, "merge": merge}]
    plan = service_plan(document=document, namespace="default", name="digits", actor="alice", now=platform.clock()).plan
    return plan_patched(plan, driver_of(Cluster.objects.get())).patched


def test_what_patches_make_of_the_objects_is_told_and_nothing_is_saved(platform: Platform) -> None:
    difference = told(platform, "Deployment", spec={"minReadySeconds": 7})
    assert "Deployment/digits-00001 as patched" in difference
    assert "+  minReadySeconds: 7" in difference
    assert not InferenceService.objects.exists()


def test_what_the_api_server_does_not_take_is_refused(platform: Platform) -> None:
    with pytest.raises(InvalidInput, match="minReadySeconds"):
        told(platform, "Deployment", spec={"minReadySeconds": -1})
    with pytest.raises(InvalidInput, match="is for CronJob"):
        told(platform, "CronJob", spec={})


def tried(plane: ControlPlane, kind: str, namespace: str = "default", **merge: Any) -> tuple[str, str]:
    document = file(plane, patches=[{"target": {"kind": kind}, "merge": merge}])
    return cluster_patches_try(document=document, name="production", namespaces=[namespace])


def test_a_clusters_own_patches_are_tried_there_and_leave_nothing(platform: Platform, plane: ControlPlane) -> None:
    difference, untried = tried(plane, "Deployment", spec={"minReadySeconds": 7})
    assert "+  minReadySeconds: 7" in difference
    assert untried == ""
    with plane.client() as client:
        there = client.get(resource_types.DEPLOYMENT.path("default")).json()["items"]
    assert "example-00001" not in {each["metadata"]["name"] for each in there}
    with pytest.raises(InvalidInput, match="minReadySeconds"):
        tried(plane, "Deployment", spec={"minReadySeconds": -1})
    with pytest.raises(InvalidInput, match="minReadySecond"):
        tried(plane, "Deployment", spec={"minReadySecond": 7})
    _, untried = tried(plane, "Deployment", namespace="nowhere", spec={"minReadySeconds": 7})
    assert 'namespaces "nowhere" not found' in untried
