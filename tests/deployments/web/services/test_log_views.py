"""Replicas on a service's page, and the last lines of what they say; the cluster is a fake one."""

import pytest

from accounts.domain.scopes import Scope
from deployments.web.services import log_views
from integrations.clusters.base import Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from tests import scenes
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db
LOG = f"{DETAIL}replicas/digits-00001-0/log"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster that runs one replica of the service."""
    replicas = (ObservedReplica("digits-00001-0", ReplicaPhase.READY),)
    seen = Observed("default", "digits", 1, (ObservedRevision("digits-00001", 100, replicas),))
    fake = FakeCluster(observed={("default", "digits"): seen})
    monkeypatch.setattr(log_views, "driver_now", lambda *_: fake)
    return fake


def test_the_reconciler_keeps_what_it_saw_of_each_replica(platform: Platform) -> None:
    platform.live(replicas=2)
    page = text(signed_in(), DETAIL)
    replicas = page.partition('id="replicas"')[2]
    assert replicas.count("Last lines") == 2
    assert replicas.count('data-state="Ready"') == 2


def test_a_replica_that_cannot_start_says_why() -> None:
    service = scenes.service()
    scenes.replicas(service)
    page = text(signed_in(), DETAIL)
    for words in ("digits-00001-1", "Backing off", "4 restarts", "It ended with exit code 1", "nothing runs"):
        assert words in page


def test_the_last_lines_are_a_page_and_for_htmx_a_part_of_one(cluster: FakeCluster) -> None:
    scenes.service()
    client = signed_in(Scope.READ)
    assert "Last lines of digits-00001-0" in text(client, LOG)
    part = client.get(LOG, headers={"HX-Request": "true"}).content.decode()
    assert part.startswith('<pre class="log"')
    assert "digits-00001-0 serves" in part


def test_a_replica_that_is_not_there_and_a_cluster_that_is_away_are_told_about(cluster: FakeCluster) -> None:
    scenes.service()
    client = signed_in()
    assert client.get(f"{DETAIL}replicas/digits-00001-9/log").status_code == 404
    cluster.away = "the local agent does not answer"
    answer = client.get(LOG)
    assert answer.status_code == 503
    assert "The local agent does not answer" in answer.content.decode()
