"""Clusters by their files, and which of them a service runs on."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_default
from clusters.services.clusters import cluster_apply, cluster_delete
from clusters.services.connection import driver_of, place_of
from common.errors import Conflict, InvalidInput, NotFound, Unavailable
from deployments.models import InferenceService
from deployments.services import service_apply, service_plan
from fairlead_cli.up.home import Home
from integrations.clusters.drivers import KubernetesCluster
from integrations.clusters.kubernetes.access import Credentials, KubeconfigFile
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.deployments._support.cluster_files import LEAST, pem
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db
NOW = timezone.now()
SERVER = "https://127.0.0.1:6443"

Capture = Callable[..., AbstractContextManager[list[Any]]]


def kubeconfig(token: str = "secret-of-robot", **user: object) -> dict[str, Any]:
    return {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": SERVER}}],
        "users": [{"name": "robot", "user": {"token": token, **user}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }


def document(connection: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    return {**LEAST, "connection": connection or {"kubeconfig": kubeconfig()}, **changed}


def apply(**changed: Any) -> tuple[Cluster, bool]:
    return cluster_apply(document=document(**changed), name=None, actor="alice", now=NOW)


def access(cluster: Cluster) -> object:
    place = place_of(cluster)
    assert isinstance(place, KubernetesCluster)
    return place.access


def test_a_cluster_is_made_and_reached_as_its_file_says() -> None:
    cluster, created = apply()
    assert created
    assert access(cluster) == Credentials(SERVER, token="secret-of-robot")
    assert isinstance(driver_of(cluster), KubernetesDriver)


def test_fairlead_up_is_told_that_there_is_a_cluster_to_watch(
    tmp_path: Path, settings: Settings, django_capture_on_commit_callbacks: Capture
) -> None:
    settings.HOME = tmp_path
    with django_capture_on_commit_callbacks(execute=True):
        apply()
    assert list(tmp_path.iterdir()) == [], "an operator of his own has no such folder"
    (tmp_path / "run").mkdir()
    with django_capture_on_commit_callbacks(execute=True):
        apply(domain="models.example.com")
        assert not Home(tmp_path).watches.exists(), "not before the commit"
    assert Home(tmp_path).watches.exists()


def test_a_kubeconfig_is_kept_encrypted_and_told_to_nobody() -> None:
    cluster, _ = apply()
    assert cluster.document["connection"] == {"kubeconfig": "stored"}
    kept = [*Cluster.objects.values_list("document", "credentials"), *AuditEntry.objects.values_list()]
    assert len(kept) == 2
    assert "secret-of-robot" not in repr(kept)


def test_the_same_file_again_changes_nothing() -> None:
    before, _ = apply()
    again, created = apply()
    assert not created
    assert again.credentials == before.credentials
    assert AuditEntry.objects.count() == 1


def test_a_new_cluster_with_a_domain_has_hosts_and_keeps_them() -> None:
    cluster, _ = apply(domain="models.example.com")
    assert cluster.document["addresses"] == "hosts"
    apply(domain="models.example.com")
    assert AuditEntry.objects.count() == 1
    with pytest.raises(InvalidInput, match="addresses is hosts, but the file has no domain"):
        apply()
    changed, _ = apply(addresses="paths")
    assert changed.document["addresses"] == "paths"


def test_a_cluster_from_before_the_choice_keeps_paths_and_hosts() -> None:
    cluster, _ = apply(domain="models.example.com")
    del cluster.document["addresses"]
    cluster.save()
    again, _ = apply(domain="models.example.com", drain="40s")
    assert "addresses" not in again.document


def test_a_file_that_says_stored_keeps_the_kubeconfig() -> None:
    apply()
    shown, _ = apply(connection={"kubeconfig": "stored"})
    assert AuditEntry.objects.count() == 1, "it says what was said before"
    changed, _ = apply(connection={"kubeconfig": "stored"}, domain="models.example.com")
    assert access(changed) == access(shown)
    assert AuditEntry.objects.count() == 2


def test_stored_without_anything_stored_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'stored', but none is stored for cluster 'production'; give it"):
        apply(connection={"kubeconfig": "stored"})


def test_new_credentials_make_a_new_driver() -> None:
    cluster, _ = apply()
    first = driver_of(cluster)
    assert driver_of(Cluster.objects.get()) is first
    changed, _ = apply(connection={"kubeconfig": kubeconfig("another")})
    assert driver_of(changed) is not first
    assert access(changed) == Credentials(SERVER, token="another")


def test_under_another_secret_key_a_kubeconfig_is_lost_and_can_be_given_again(settings: Settings) -> None:
    cluster, _ = apply()
    settings.SECRET_KEY = "y" * 40
    with pytest.raises(Unavailable, match="kubeconfigs of clusters cannot be read with the present FAIRLEAD_SECRET"):
        driver_of(cluster)
    with pytest.raises(Unavailable):
        apply(connection={"kubeconfig": "stored"})
    changed, _ = apply()
    assert access(changed) == Credentials(SERVER, token="secret-of-robot")


def test_certificates_that_are_none_are_refused_before_they_are_kept() -> None:
    data = {"client-certificate-data": pem("no PEM"), "client-key-data": pem("no PEM")}
    with pytest.raises(InvalidInput, match=f"certificates and key for {SERVER} cannot be used"):
        apply(connection={"kubeconfig": kubeconfig(**data)})
    assert not Cluster.objects.exists()


def test_a_mounted_kubeconfig_is_read_below_the_allowed_folder_alone(tmp_path: Path, settings: Settings) -> None:
    allowed, outside = tmp_path / "allowed", tmp_path / "outside.yaml"
    allowed.mkdir()
    outside.write_text("{}")
    (allowed / "link.yaml").symlink_to(outside)
    with pytest.raises(InvalidInput, match="no folder is allowed; set FAIRLEAD_KUBECONFIG_FOLDER"):
        apply(connection={"kubeconfigPath": str(outside)})
    settings.KUBECONFIG_FOLDER = allowed
    for path in (outside, allowed / ".." / "outside.yaml", allowed / "link.yaml"):
        with pytest.raises(InvalidInput, match="expected a file below"):
            apply(connection={"kubeconfigPath": str(path)})
    with pytest.raises(Unavailable, match="cannot be read here: No such file or directory; mount it"):
        apply(connection={"kubeconfigPath": str(allowed / "eu.yaml")})


def test_a_mounted_kubeconfig_is_taken_up_anew_when_it_changes(tmp_path: Path, settings: Settings) -> None:
    settings.KUBECONFIG_FOLDER = tmp_path
    path = tmp_path / "eu.yaml"
    path.write_text("first")
    cluster, _ = apply(connection={"kubeconfigPath": str(path), "context": "eu"})
    assert access(cluster) == KubeconfigFile(path, "eu", b"first")
    path.write_text("second")
    assert access(cluster) == KubeconfigFile(path, "eu", b"second")


def test_certificates_that_a_mounted_kubeconfig_names_make_another_access_when_they_change(
    tmp_path: Path, settings: Settings
) -> None:
    settings.KUBECONFIG_FOLDER = tmp_path
    content = kubeconfig(**{"token": None, "client-certificate": "c.pem", "client-key": "c.key", "tokenFile": "token"})
    path = tmp_path / "eu.yaml"
    path.write_text(json.dumps(content))
    (tmp_path / "c.pem").write_text("first")
    cluster, _ = apply(connection={"kubeconfigPath": str(path)})
    first = access(cluster)
    assert isinstance(first, KubeconfigFile)
    assert (first.token_file, access(cluster)) == (str(tmp_path / "token"), first)
    (tmp_path / "next").write_text("another")
    (tmp_path / "next").replace(tmp_path / "c.pem")
    assert access(cluster) != first


def test_this_machine_has_no_file() -> None:
    with pytest.raises(InvalidInput, match="'local', which is this machine"):
        apply(name="local")


def test_a_cluster_is_deleted_once_nothing_runs_on_it(platform: Platform) -> None:
    apply()
    platform.version(1)
    service = _service(platform, cluster="production")
    with pytest.raises(Conflict, match="'production' runs default/digits; delete them first"):
        cluster_delete(name="production", actor="alice", now=NOW)
    service.delete()
    cluster_delete(name="production", actor="alice", now=NOW)
    assert not Cluster.objects.filter(name="production").exists()
    assert AuditEntry.objects.get(action="cluster.delete").target == "clusters/production"
    with pytest.raises(NotFound, match="there is no cluster 'production'"):
        cluster_delete(name="production", actor="alice", now=NOW)


def test_the_default_cluster_stays(settings: Settings) -> None:
    apply()
    settings.DEFAULT_CLUSTER = "production"
    with pytest.raises(Conflict, match="'production' is the default one"):
        cluster_delete(name="production", actor="alice", now=NOW)


def _service(platform: Platform, cluster: str | None = None) -> InferenceService:
    file = _file(platform, cluster)
    return service_apply(document=file, namespace=None, name=None, actor="alice", now=platform.clock())[0]


def _file(platform: Platform, cluster: str | None) -> dict[str, Any]:
    file = platform.document(policy=None)
    if cluster is not None:
        file["spec"]["cluster"] = cluster
    return file


def test_a_service_runs_on_the_default_cluster_unless_it_names_another(platform: Platform, settings: Settings) -> None:
    apply()
    platform.version(1)
    assert _service(platform).cluster.name == "local"
    InferenceService.objects.all().delete()
    assert _service(platform, "production").cluster.name == "production"
    InferenceService.objects.all().delete()
    settings.DEFAULT_CLUSTER = "production"
    assert _service(platform).cluster.name == "production"


def test_a_cluster_that_is_not_there_is_refused_with_those_that_are(platform: Platform, settings: Settings) -> None:
    apply()
    platform.version(1)
    with pytest.raises(NotFound, match=r"spec\.cluster names the cluster 'prod', which is not there; there are: produ"):
        _service(platform, "prod")
    settings.DEFAULT_CLUSTER = "staging"
    with pytest.raises(NotFound, match="FAIRLEAD_DEFAULT_CLUSTER names the cluster 'staging', which is not there"):
        _service(platform)


def test_a_service_does_not_move_while_it_exists(platform: Platform, settings: Settings) -> None:
    apply()
    platform.version(1)
    service = _service(platform, "production")
    with pytest.raises(Conflict, match="runs on 'production' and cannot move while it exists"):
        _service(platform, "local")
    assert _service(platform, None).cluster == service.cluster, "a file that leaves it open leaves it where it is"
    settings.DEFAULT_CLUSTER = "production"
    assert _service(platform, "production").cluster == service.cluster


def test_a_dry_run_says_the_same_and_leaves_nothing(platform: Platform) -> None:
    platform.version(1)
    with pytest.raises(NotFound, match=r"spec\.cluster names"):
        service_plan(
            document=_file(platform, "nowhere"), namespace="default", name="digits", actor="alice", now=platform.clock()
        )


def test_clients_are_told_the_address_of_the_services_own_gateway(platform: Platform) -> None:
    apply()
    platform.version(1)
    _service(platform, "production")
    assert platform.view().url == "https://models.example.com/serving/default/digits/v2/models/digits"
    assert platform.view().cluster == "production"


def test_the_cluster_of_this_machine_is_made_once() -> None:
    first = cluster_default(now=NOW)
    assert cluster_default(now=NOW + timedelta(days=1)).pk == first.pk


def test_a_namespace_with_services_leaves_its_gateway_before_that_stops_serving_it(platform: Platform) -> None:
    apply()
    platform.version(1)
    _service(platform, "production")
    further = {"url": "https://a.test", "name": "a", "namespace": "gateways", "namespaces": ["default"]}
    with pytest.raises(InvalidInput, match="name default as leaving of models until no client uses it any more"):
        apply(gateways=[further])
    apply(gateways=[further], gateway={**LEAST["gateway"], "leaving": ["default"]})
    model = "serving/default/digits/v2/models/digits"
    view = platform.view()
    assert (view.url, view.leaving_urls) == (f"https://a.test/{model}", (f"https://models.example.com/{model}",))
    apply(gateways=[further])
    view = platform.view()
    assert (view.url, view.leaving_urls) == (f"https://a.test/{model}", ())
    with pytest.raises(InvalidInput, match="name default as leaving of a until"):
        apply(gateways=[{**further, "namespaces": ["vision"]}])
    apply()
    assert platform.view().url == f"https://models.example.com/{model}", "the file has no such Gateway any more"


def test_a_waker_stays_as_long_as_services_may_have_no_replicas(platform: Platform) -> None:
    waker = {"name": "waker", "namespace": "fairlead"}
    apply(waker=waker)
    platform.version(1)
    file = _file(platform, "production")
    file["spec"]["predictor"]["minReplicas"] = 0
    service_apply(document=file, namespace=None, name=None, actor="alice", now=platform.clock())
    with pytest.raises(
        InvalidInput, match=r"minReplicas: 0, such as default/digits; keep waker, or give them"
    ) as found:
        apply()
    assert found.value.field == "waker"
    apply(waker={**waker, "name": "another"})
    InferenceService.objects.update(document=_file(platform, "production"))
    apply()
    file["spec"]["predictor"]["pool"] = "warm"
    InferenceService.objects.update(document=file)
    apply()  # the pool answers while it has no replicas
