"""A cluster that is reached as its file says: by a mounted kubeconfig, and by one that was stored."""

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.services.clusters import cluster_apply
from clusters.services.connection import driver_of
from tests.cluster._support.kubeconfigs import flat
from tests.cluster.plane import ControlPlane
from tests.deployments._support.cluster_files import LEAST

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]


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
