"""A cluster that is reached as its file says: by a mounted kubeconfig, and by one that was stored."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from deployments.connecting import driver_of
from deployments.services import cluster_apply
from tests.cluster.plane import ControlPlane
from tests.deployments.cluster_file.test_file import LEAST

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]


def flat(kubeconfig: Path) -> dict[str, Any]:
    """Return a kubeconfig with the content of the files that it names, as `kubectl config view --flatten` does."""
    content: dict[str, Any] = json.loads(kubeconfig.read_text())
    for each in (
        *(cluster["cluster"] for cluster in content["clusters"]),
        *(user["user"] for user in content["users"]),
    ):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in each:
                each[f"{name}-data"] = base64.b64encode(Path(each.pop(name)).read_bytes()).decode()
    return content


def test_by_credentials_that_were_stored(plane: ControlPlane) -> None:
    document = {**LEAST, "connection": {"kubeconfig": flat(plane.kubeconfig)}}
    cluster, _ = cluster_apply(document=document, name=None, actor="alice", now=timezone.now())
    [gateway] = driver_of(cluster).inventory().components
    assert "there is no Gateway models in gateways" in gateway.message


def test_by_a_file_that_the_operator_mounted(plane: ControlPlane, settings: Settings) -> None:
    settings.KUBECONFIG_FOLDER = plane.kubeconfig.parent
    document = {**LEAST, "connection": {"kubeconfigPath": str(plane.kubeconfig), "context": "test"}}
    cluster, _ = cluster_apply(document=document, name=None, actor="alice", now=timezone.now())
    [gateway] = driver_of(cluster).inventory().components
    assert "there is no Gateway models in gateways" in gateway.message
