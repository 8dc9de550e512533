"""Which Prometheus answers queries about a cluster's services, and what becomes of its token."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from clusters.services.connection import file_of
from clusters.services.prometheus import findings, prometheus_of
from clusters.services.trial import cluster_try
from common.errors import InvalidInput
from deployments.models import InferenceService
from deployments.turns import sweep
from integrations.metrics.prometheus import Answer, Prometheus
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform
from tests.integrations.metrics._support.server import Server, serving, success

pytestmark = pytest.mark.django_db
URL = "https://prometheus.example.com"


def apply(**prometheus: Any) -> Cluster:
    cluster, _ = cluster_apply(
        document={**LEAST, "prometheus": {"url": URL, **prometheus}}, name=None, actor="alice", now=timezone.now()
    )
    return cluster


def test_a_cluster_has_its_own_with_its_tenant_and_its_token() -> None:
    cluster = apply(tenant="eu", token="secret-of-eu")
    assert prometheus_of(cluster) == Prometheus(URL, "secret-of-eu", tenant="eu", cluster="production")
    assert cluster.document["prometheus"] == {"url": URL, "tenant": "eu", "token": "stored"}
    kept = [*Cluster.objects.values_list(), *AuditEntry.objects.values_list()]
    assert len(kept) == 2
    assert "secret-of-eu" not in repr(kept)


def test_without_one_that_of_the_settings_answers(settings: Settings) -> None:
    cluster, _ = cluster_apply(document=LEAST, name=None, actor="alice", now=timezone.now())
    assert prometheus_of(cluster) is None
    assert list(findings(None)) == []
    settings.PROMETHEUS_URL, settings.PROMETHEUS_TENANT = URL, "all"
    assert prometheus_of(cluster) == Prometheus(URL, tenant="all")


def test_a_stored_token_is_kept_for_its_address_alone() -> None:
    with pytest.raises(InvalidInput, match="'stored', but none is stored for cluster 'production'; give it"):
        apply(token="stored")
    first = apply(token="secret-of-eu")
    assert apply(token="secret-of-eu").prometheus_token == first.prometheus_token, "the same file changes nothing"
    again = apply(token="stored", tenant="us")
    assert prometheus_of(again) == Prometheus(URL, "secret-of-eu", tenant="us", cluster="production")
    elsewhere = {"url": "https://collector.example.net", "token": "stored"}
    with pytest.raises(InvalidInput, match=r"was given for https://prometheus\.example\.com; give the token for https"):
        apply(**elsewhere)
    (found,) = cluster_try(document={**LEAST, "prometheus": elsewhere}, name="production")
    assert (found.ok, "was given for" in found.message) == (False, True)
    assert apply().prometheus_token == "", "a file without a token ends it"


def test_an_authority_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^prometheus\.certificateAuthority is no PEM with certificates: "):
        apply(certificateAuthority="PEM")


def test_a_check_says_whether_it_answers() -> None:
    server = Server(body=success("vector", [{"metric": {}, "value": [1, "1"]}]))
    with serving(server):
        prometheus = prometheus_of(apply(url=server.url, tenant="eu", token="s"))
        (found,) = findings(prometheus)
        assert (found.ok, found.message) == (True, f"Prometheus of cluster production at {server.url} answers queries")
        assert (server.tenants, server.authorization) == (["eu"], ["Bearer s"])
        server.body = success("vector", [])
        (found,) = findings(prometheus)
        assert (found.ok, "another number than 1" in found.message) == (False, True)
    (found,) = findings(prometheus)
    assert not found.ok
    assert found.message.startswith(f"Prometheus of cluster production at {server.url} does not answer: ")
    assert "`prometheus` of the cluster file" in found.remedy


def test_a_service_s_queries_go_to_its_cluster_s(platform: Platform) -> None:
    platform.live()
    server = Server(body=success("scalar", [1, "4"]))
    with serving(server):
        InferenceService.objects.update(cluster=apply(url=server.url, tenant="eu"))
        assert file_of(Cluster.objects.get(name="production")) is not None
        asked = sweep._ask_prometheus(InferenceService.objects.get().pk, ["up"])
    assert (list(asked), server.tenants) == ([Answer(4.0)], ["eu"])
