from django.utils import timezone

from clusters.services.cluster_selection import cluster_default
from deployments.models import InferenceService
from deployments.reconcile.restarts import note_components
from deployments.selectors import change_marks, service_list
from events.selectors import cluster_event_query, events_after, events_newest
from integrations.clusters.base import Component, Nodes
from tests.deployments._support.platform import Platform


def test_events_are_numbered_without_gaps_and_read_from_any_number_on(platform: Platform) -> None:
    service = platform.live()
    platform.version(2)
    platform.start()
    for _ in range(4):
        platform.turn()
    newest = events_newest(service_id=service.pk, limit=1)[0].seq
    assert [event.seq for event in events_after(service_id=service.pk, seq=0)] == list(range(1, newest + 1))
    assert [event.seq for event in events_after(service_id=service.pk, seq=newest - 2)] == [newest - 1, newest]
    assert [event.seq for event in events_after(service_id=service.pk, seq=0, limit=2)] == [1, 2]
    assert change_marks([service.pk]).of[service.pk] == (InferenceService.objects.get().changes, newest)


def test_every_change_that_a_page_shows_moves_the_mark(platform: Platform) -> None:
    service = platform.live()
    marks = [change_marks([service.pk])]
    platform.version(2)
    platform.start()
    for _ in range(5):
        platform.turn()
        platform.traffic(10)
        marks.append(change_marks([service.pk]))
    for seen in ([each.of[service.pk] for each in marks], [each.everything for each in marks]):
        assert len(set(seen)) == len(marks)


def test_a_failed_revision_is_shown_with_its_rollout(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    platform.bad_time(failed=8)
    for _ in range(2):
        platform.turn()
    [service] = service_list(now=timezone.now())
    assert [(revision.name, revision.role, revision.replicas_wanted) for revision in service.revisions] == [
        ("digits-00001", "stable", 1),
        ("digits-00002", "failed", 0),
    ]
    assert service.rollout is not None
    assert service.rollout.verdict == "Failed"


def test_restarts_of_the_clusters_own_parts_are_told_once(platform: Platform) -> None:
    cluster = cluster_default(now=platform.clock())
    for restarts in (0, 1, 1, 3):
        nodes = Nodes(
            (Component("gateway", ready=True, restarts=restarts, message="signal 9"), Component("web", ready=True))
        )
        note_components(cluster_id=cluster.pk, nodes=nodes, now=platform.clock())
    assert [event.message for event in cluster_event_query(cluster_id=cluster.pk).order_by("-seq")] == [
        "gateway ended by itself and was started again (restart 3): signal 9",
        "gateway ended by itself and was started again (restart 1): signal 9",
    ]
    cluster.refresh_from_db()
    assert cluster.components["web"] == {"ready": True, "restarts": 0, "message": ""}
