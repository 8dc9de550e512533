"""A cluster that swallows what is sent to it: the others go on, its services say so, and it comes back by itself."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster
from clusters.services import connection
from clusters.services.clusters import cluster_apply
from clusters.services.connection import driver_of
from common.errors import Unavailable
from deployments import tasks
from deployments.models import InferenceService
from deployments.reconcile import cluster_claim
from deployments.reconcile.renewal import HELD
from deployments.reconcile.restarts import pause_after
from deployments.services import service_apply
from deployments.turns import sweep
from integrations.clusters.base import ClusterDriver
from integrations.clusters.kubernetes.api import client
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform


class Swallowing:
    """A server that takes connections and never says a word; counts them."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._kept: list[socket.socket] = []
        self.address = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        return len(self._kept)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for each in self._kept:
            each.close()

    def _take(self) -> None:
        while True:
            try:
                self._kept.append(self._listener.accept()[0])
            except OSError:
                return


@pytest.fixture
def swallowing() -> Iterator[Swallowing]:
    server = Swallowing()
    yield server
    server.close()


@pytest.fixture
def swept(platform: Platform, swallowing: Swallowing, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """Two services on this machine's cluster, a fake, and two on a real driver's, which swallows everything."""
    monkeypatch.setattr(client, "_TIMEOUT_S", (0.2, 0.2))
    monkeypatch.setattr(sweep.counters, "collect", platform.metrics)

    def driver(cluster: Cluster) -> ClusterDriver:
        return platform.cluster if cluster.name == "local" else driver_of(cluster)

    monkeypatch.setattr(connection, "driver_of", driver)
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": swallowing.address}}],
        "users": [{"name": "robot", "user": {"token": "secret"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    file = {**LEAST, "connection": {"kubeconfig": kubeconfig}}
    cluster_apply(document=file, name=None, actor="alice", now=timezone.now())
    platform.version(1)
    for name, cluster in (
        ("here-1", "local"),
        ("here-2", "local"),
        ("there-1", "production"),
        ("there-2", "production"),
    ):
        document: dict[str, Any] = platform.document(policy=None)
        document["metadata"], document["spec"]["cluster"] = {"name": name}, cluster
        service_apply(document=document, namespace=None, name=None, actor="alice", now=timezone.now())
    return platform


def _there() -> Cluster:
    return Cluster.objects.get(name="production")


def _let_it_be_asked_again() -> None:
    now = timezone.now()
    Cluster.objects.update(look_at=now)
    InferenceService.objects.update(ticked_at=now - timedelta(minutes=1))


def test_a_sweep_leaves_a_cluster_that_may_hang_to_a_task_of_its_own(
    swept: Platform, swallowing: Swallowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(tasks, "send", lambda task, *args: sent.append((task, *args)))
    tasks.sweep()
    assert sorted(desired.service for desired in swept.cluster.applied) == ["here-1", "here-2"]
    assert sent == [(tasks.sweep_cluster, _there().pk)]
    assert swallowing.connections == 0


def test_a_cluster_that_hangs_is_waited_for_once_and_its_services_say_so(
    swept: Platform, swallowing: Swallowing
) -> None:
    tasks.sweep_cluster(_there().pk)
    assert swallowing.connections == 1
    reasons = InferenceService.objects.filter(name__startswith="there").values_list("reason", flat=True)
    assert all(reason.startswith("the cluster cannot be read: the Kubernetes API server") for reason in reasons)
    assert _there().problem.startswith(f"the Kubernetes API server {swallowing.address} does not answer")
    assert _there().silent_since is not None


def test_until_its_next_look_nobody_waits_for_it(swept: Platform, swallowing: Swallowing) -> None:
    tasks.sweep_cluster(_there().pk)
    Cluster.objects.update(look_at=timezone.now() + timedelta(minutes=1))
    InferenceService.objects.update(ticked_at=None)
    tasks.sweep_cluster(_there().pk)
    tasks.reconcile(InferenceService.objects.get(name="there-1").pk)
    assert swallowing.connections == 1
    assert not InferenceService.objects.filter(name__startswith="there", ticked_at=None).exists()


def test_pauses_between_looks_double_up_to_half_a_minute() -> None:
    assert [pause_after(looks).total_seconds() for looks in (1, 2, 3, 5, 6, 1000)] == [1, 2, 4, 16, 30, 30]


def test_the_pause_grows_with_each_look_in_vain_and_since_stays(swept: Platform) -> None:
    tasks.sweep_cluster(_there().pk)
    first = _there()
    _let_it_be_asked_again()
    tasks.sweep_cluster(first.pk)
    second = _there()
    assert second.silent_since == first.silent_since
    assert (first.silent_looks, second.silent_looks) == (1, 2)


def test_it_goes_on_by_itself_when_the_cluster_answers_again(swept: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.sweep_cluster(_there().pk)
    _let_it_be_asked_again()
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: swept.cluster)
    tasks.sweep_cluster(_there().pk)
    assert {desired.service for desired in swept.cluster.applied} == {"there-1", "there-2"}
    there = _there()
    assert (there.problem, there.silent_since, there.look_at) == ("", None, None)


def test_of_many_services_only_the_first_waits_where_a_cluster_goes_away_in_the_middle(
    swept: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Going:
        """Its look is fine at first; then nothing answers."""

        def inventory(self, *, with_nodes: bool) -> object:
            calls.append("look")
            if len(calls) > 1:
                raise Unavailable("it is away")
            return swept.cluster.inventory(with_nodes=with_nodes)

        def __getattr__(self, verb: str) -> Any:
            def away(*_: object) -> None:
                calls.append(verb)
                raise Unavailable("it is away")

            return away

    monkeypatch.setattr(connection, "driver_of", lambda _cluster: Going())
    tasks.sweep_cluster(_there().pk)
    assert calls.count("observe") == 1
    assert InferenceService.objects.filter(reason="the cluster cannot be read: it is away").count() == 2


def test_one_sweep_at_a_time_has_a_cluster(swept: Platform, swallowing: Swallowing) -> None:
    claim = cluster_claim.take(_there().pk, now=timezone.now())
    assert claim is not None
    tasks.sweep_cluster(_there().pk)
    assert swallowing.connections == 0
    claim.release()
    tasks.sweep_cluster(_there().pk)
    assert swallowing.connections == 1
    assert _there().swept_until is None


def test_a_claim_of_a_worker_that_was_killed_runs_out(swept: Platform) -> None:
    now = timezone.now()
    assert cluster_claim.take(_there().pk, now=now)
    assert cluster_claim.take(_there().pk, now=now + HELD - timedelta(seconds=1)) is None
    assert cluster_claim.take(_there().pk, now=now + HELD) is not None


def test_claims_are_renewed_together_and_the_lost_ones_are_named(swept: Platform) -> None:
    now, row = timezone.now(), _there()
    others = [Cluster.objects.create(name=f"there-{each}", kind=row.kind, created_at=now) for each in range(2)]
    claims = {each.pk: cluster_claim.take(each.pk, now=now) for each in (row, *others)}
    held = {key: claim for key, claim in claims.items() if claim is not None}
    assert cluster_claim.renew_all(held, now=now + timedelta(seconds=2)) == []
    later = now + timedelta(seconds=2) + HELD
    assert cluster_claim.take(row.pk, now=later), "it ran out, and another one takes it"
    assert cluster_claim.renew_all(held, now=later) == [row.pk]
    assert cluster_claim.renew_all(held, now=later) == [row.pk], "it stays lost"
    assert cluster_claim.take(others[0].pk, now=later + HELD - timedelta(seconds=1)) is None
    held[others[1].pk].release()
    assert cluster_claim.renew_all(held, now=later) == [row.pk, others[1].pk]


def test_a_hint_is_dropped_while_another_thread_waits_for_the_same_cluster(
    swept: Platform, swallowing: Swallowing
) -> None:
    InferenceService.objects.filter(name="there-1").update(
        lease_owner="another", lease_expires_at=timezone.now() + timedelta(seconds=20)
    )
    tasks.reconcile(InferenceService.objects.get(name="there-2").pk)
    assert swallowing.connections == 0
    InferenceService.objects.filter(name="here-1").update(
        lease_owner="another", lease_expires_at=timezone.now() + timedelta(seconds=20)
    )
    tasks.reconcile(InferenceService.objects.get(name="here-2").pk)
    assert [desired.service for desired in swept.cluster.applied] == ["here-2"]


def test_a_cluster_that_cannot_be_made_a_driver_of_stops_nobody(swept: Platform) -> None:
    Cluster.objects.filter(name="production").update(credentials="what another key sealed")
    tasks.sweep_cluster(_there().pk)
    assert "cannot be read with the present FAIRLEAD_SECRET_KEY" in _there().problem
    assert swept.cluster.applied == []
