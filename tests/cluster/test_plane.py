"""The test control plane is real: who has no role may do nothing, and what is written is validated."""

import pytest
from kubernetes import client, config

from tests.cluster.binaries import kubernetes_version
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster


def api_of(kubeconfig: object) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))


def test_its_version_is_the_one_that_is_pinned(plane: ControlPlane) -> None:
    api = client.VersionApi(config.new_client_from_config(str(plane.kubeconfig)))
    assert api.get_code().git_version == kubernetes_version()


def test_who_was_given_no_role_may_read_nothing(plane: ControlPlane) -> None:
    with pytest.raises(client.ApiException) as refused:
        api_of(plane.user("alice")).list_namespaced_pod("default")
    assert refused.value.status == 403


def test_a_pod_that_names_no_container_is_refused(plane: ControlPlane) -> None:
    pod = {"metadata": {"name": "empty"}, "spec": {"containers": []}}
    with pytest.raises(client.ApiException, match=r"spec\.containers"):
        api_of(plane.kubeconfig).create_namespaced_pod("default", pod)
