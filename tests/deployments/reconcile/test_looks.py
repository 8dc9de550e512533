"""A look at a cluster is recorded by one statement while the cluster is as before, and whole where it is not."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from clusters.models import Cluster
from deployments.reconcile.restarts import note_look, note_silence
from events.models import Event
from integrations.clusters.base import Component, Nodes

NOW = timezone.now()
LATER = NOW + timedelta(seconds=5)
SEEN = Nodes((Component("gateway", True, 0),))


@pytest.fixture
def cluster(db: None) -> Cluster:
    row = Cluster.objects.create(name="here", kind="kubernetes", created_at=NOW, changed_at=NOW)
    note_look(row, SEEN, now=NOW)
    row.refresh_from_db()
    return row


def test_one_statement_records_that_a_cluster_is_as_before(
    cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        note_look(cluster, SEEN, now=LATER)
    cluster.refresh_from_db()
    assert (cluster.observed_at, cluster.checked_at) == (LATER, LATER)


def test_a_restart_between_two_looks_is_an_event(cluster: Cluster) -> None:
    note_look(cluster, Nodes((Component("gateway", True, 1),)), now=LATER)
    assert "gateway ended by itself" in Event.objects.get().message


def test_a_gap_between_two_looks_is_kept(cluster: Cluster) -> None:
    note_look(cluster, SEEN, now=NOW + timedelta(minutes=5))
    cluster.refresh_from_db()
    assert len(cluster.unseen) == 1


def test_the_first_look_after_silence_ends_it(cluster: Cluster) -> None:
    note_silence(cluster_id=cluster.pk, problem="away", now=NOW)
    cluster.refresh_from_db()
    note_look(cluster, SEEN, now=LATER)
    cluster.refresh_from_db()
    assert (cluster.silent_since, cluster.problem, cluster.observed_at) == (None, "", LATER)


def test_a_look_that_began_before_another_found_the_cluster_away_records_nothing(cluster: Cluster) -> None:
    note_silence(cluster_id=cluster.pk, problem="away", now=NOW)
    note_look(cluster, SEEN, now=LATER)  # the row is that of before
    cluster.refresh_from_db()
    assert (cluster.problem, cluster.observed_at) == ("away", NOW)
