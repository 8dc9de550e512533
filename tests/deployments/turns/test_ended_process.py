"""Controllers and sweeps: who goes on with services of a killed process, and with which driver."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection as database
from django.utils import timezone

from clusters.models import Cluster
from clusters.services import connection
from clusters.services.clusters import cluster_apply
from deployments import tasks
from deployments.domain.service_state.quiescence import TOUCHED
from deployments.models import InferenceService
from deployments.reconcile import cluster_claim
from deployments.reconcile.renewal import HELD, RENEW_EVERY_S
from deployments.services import service_apply
from deployments.turns.controller import Controller
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.platform import Platform

DEADLINE_S = 60.0
WITHIN_S = 10.0
PROCESS = """
import sys, threading, time
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
import django
django.setup()
from clusters.services import connection
from common import process_identity
from deployments import tasks
from deployments.turns.controller import Controller
from tests.deployments._support.fakes import FakeCluster

class Hanging(FakeCluster):
    def observe(self, namespace, service):
        print("in a turn\\n", end="", flush=True)  # at one go: several threads say it
        time.sleep(600)

process_identity._place = lambda: "another machine"
connection.driver_of = lambda cluster: Hanging()
if sys.argv[2] == "worker":
    tasks.sweep_cluster(int(sys.argv[3]))
else:
    Controller(4).run(threading.Event())
"""


@pytest.fixture
def place(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """Give the platform with two clusters, each with a service."""
    platform = Platform()
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: platform.cluster)
    platform.version(1)
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "robot", "user": {"token": "secret"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    for name in ("first", "second"):
        file = {**LEAST, "name": name, "connection": {"kubeconfig": kubeconfig}}
        cluster_apply(document=file, name=None, actor="alice", now=timezone.now())
        document = platform.document(policy=None)
        document["metadata"] = {"name": f"on-{name}"}
        document["spec"]["cluster"] = name
        service_apply(document=document, namespace=None, name=None, actor="alice", now=timezone.now())
    return platform


def until(look: Callable[[], object], within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not look():
        assert time.monotonic() < deadline, f"not within {within_s:g} s"
        time.sleep(0.05)


def holders() -> list[str]:
    return list(InferenceService.objects.order_by("name").values_list("lease_owner", flat=True))


def free() -> set[int]:
    return set(cluster_claim.clusters_free(now=timezone.now()))


def leased() -> bool:
    return InferenceService.objects.filter(lease_expires_at__gt=timezone.now()).exists()


def had_turns(place: Platform) -> bool:
    return {each.service for each in place.cluster.applied} == {"on-first", "on-second"}


def test_sweeps_go_on_with_services_of_a_killed_worker_and_a_killed_watcher_within_ten_seconds(place: Platform) -> None:
    first, everywhere = Cluster.objects.get(name="first").pk, free()
    path = f"{settings.ROOT / 'platform'}{os.pathsep}{settings.ROOT}"
    with ExitStack() as running:
        for kind in ("worker", "watcher"):  # the watcher has what is free: the second cluster
            process = running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROCESS, str(database.settings_dict["NAME"]), kind, str(first)],
                    cwd=settings.ROOT,
                    env={**os.environ, "PYTHONPATH": path},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            running.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "in a turn\n"
        began, held = time.monotonic(), holders()
        assert all(held)
        until(lambda: time.monotonic() > began + HELD.total_seconds() + 0.5)
        assert (free(), holders()) == (set(), held), "claims and leases are renewed"
    killed = time.monotonic()
    until(lambda: free() == everywhere and not leased())
    assert time.monotonic() - killed < WITHIN_S
    assert HELD.total_seconds() + settings.RECONCILE_INTERVAL_S < WITHIN_S, "sweeps come that often"
    for cluster_id in everywhere:
        tasks.sweep_cluster(cluster_id)
    assert had_turns(place)


def test_a_controller_takes_clusters_whose_claims_run_out_and_gives_them_back_at_its_end(place: Platform) -> None:
    soon = timezone.now() + timedelta(seconds=1)
    Cluster.objects.filter(name="first").update(swept_until=soon)
    everywhere, stopped = free() | {Cluster.objects.get(name="first").pk}, threading.Event()
    controller = threading.Thread(target=Controller(4).run, args=(stopped,))
    controller.start()
    try:
        until(lambda: had_turns(place))
        assert timezone.now() > soon
        assert free().isdisjoint(everywhere)
    finally:
        stopped.set()
        controller.join(DEADLINE_S)
    assert free() == everywhere


def test_controllers_share_the_clusters_and_one_has_them_all_when_the_other_ends(place: Platform) -> None:
    everywhere, one, other = free(), Controller(4), Controller(4)
    ends = {each: threading.Event() for each in (one, other)}
    threads = {each: threading.Thread(target=each.run, args=(ends[each],)) for each in ends}
    try:
        threads[one].start()
        until(lambda: one.clusters() == everywhere and not free())
        threads[other].start()
        until(lambda: (len(one.clusters()), len(other.clusters())) == (1, 1) and not free())
        assert one.clusters() | other.clusters() == everywhere
        place.cluster.applied.clear()
        InferenceService.objects.update(settled=TOUCHED)
        until(lambda: had_turns(place))
        ends[one].set()
        threads[one].join(DEADLINE_S)
        until(lambda: other.clusters() == everywhere and not free())
    finally:
        for each, thread in threads.items():
            ends[each].set()
            if thread.ident is not None:
                thread.join(DEADLINE_S)
    assert free() == everywhere


def test_a_controller_goes_on_with_all_clusters_when_another_one_is_killed(place: Platform) -> None:
    stopped, controller = threading.Event(), Controller(4)
    everywhere, path = free(), f"{settings.ROOT / 'platform'}{os.pathsep}{settings.ROOT}"
    thread = threading.Thread(target=controller.run, args=(stopped,))
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(database.settings_dict["NAME"]), "watcher"],
        cwd=settings.ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as killed:
        try:
            assert killed.stdout is not None
            assert killed.stdout.readline() == "in a turn\n"
            thread.start()
            until(lambda: len(controller.clusters()) == 1)
            killed.kill()
            until(lambda: had_turns(place) and controller.clusters() == everywhere)
            assert HELD.total_seconds() + RENEW_EVERY_S < WITHIN_S, "what was held is taken by then"
        finally:
            killed.kill()
            stopped.set()
            thread.join(DEADLINE_S)


def test_settled_services_have_a_turn_with_the_driver_of_a_changed_cluster_file(place: Platform) -> None:
    before, stopped = place.cluster, threading.Event()
    controller = threading.Thread(target=Controller(4).run, args=(stopped,))
    controller.start()
    try:
        until(lambda: had_turns(place))
        place.cluster = FakeCluster()
        before.applied.clear()
        InferenceService.objects.filter(name="on-first").update(settled=TOUCHED)
        until(lambda: before.applied)  # by the driver that the controller still has
        Cluster.objects.filter(name="first").update(changed_at=timezone.now())
        until(
            lambda: "on-first" in {each.service for each in place.cluster.applied}, within_s=30.0
        )  # no resync comes by then
    finally:
        stopped.set()
        controller.join(DEADLINE_S)
