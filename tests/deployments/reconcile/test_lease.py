"""One reconciler at a time; one that is known to be gone is not waited for."""

import subprocess
import sys

import pytest

from common.process_identity import ProcessName, myself, start_ticks
from deployments.models import InferenceService
from deployments.reconcile import lease
from deployments.reconcile.reconciler import Outcome
from deployments.reconcile.renewal import HELD
from tests.deployments._support.platform import Platform

HERE = "here"
RUNNING = {7: 1000}


@pytest.mark.parametrize(
    ("owner", "gone"),
    [
        pytest.param("here.7.1000.abc", False, id="it runs"),
        pytest.param("here.7.900.abc", True, id="its number is another process's now"),
        pytest.param("here.8.1000.abc", True, id="there is no such process"),
        pytest.param("there.8.1000.abc", False, id="of another machine nothing is known"),
        pytest.param(".8.1000.abc", False, id="a place without a name is none"),
        pytest.param("0f3c19aa2b7d4e55", False, id="a text of an older version"),
        pytest.param("", False, id="nobody"),
    ],
)
def test_who_is_gone_for_certain(owner: str, gone: bool) -> None:
    assert lease.owner_is_gone(owner, place=HERE, started=RUNNING.get) is gone


def test_nobody_is_gone_where_places_have_no_names() -> None:
    assert not lease.owner_is_gone(".8.1000.abc", place="", started=RUNNING.get)


def held_by(platform: Platform, name: ProcessName) -> None:
    expires = platform.clock() + HELD
    InferenceService.objects.update(lease_owner=f"{name}.0f3c19aa2b7d", lease_expires_at=expires)


def test_the_lease_of_a_killed_worker_is_taken_over_at_once(platform: Platform) -> None:
    platform.live()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        name = ProcessName(myself().place, worker.pid, start_ticks(worker.pid) or 0)
        held_by(platform, name)
        assert platform.turn() is Outcome.BUSY, "it lives"
        worker.kill()
        worker.wait()
        assert platform.turn() is Outcome.DONE
    assert InferenceService.objects.get().lease_owner == ""


def test_the_lease_of_a_worker_elsewhere_has_to_run_out(platform: Platform) -> None:
    platform.live()
    held_by(platform, ProcessName("elsewhere", 1, 1))
    assert platform.turn() is Outcome.BUSY
    assert platform.turn(seconds=HELD.total_seconds()) is Outcome.DONE


def test_it_is_taken_over_once(platform: Platform) -> None:
    service = platform.live()
    held_by(platform, ProcessName(myself().place, 2**22 + 1, 1))
    owners = [lease.take(service.pk, platform.clock()) for _ in range(2)]
    assert [bool(owner) for owner in owners] == [True, False]
    assert lease.holds(service.pk, owners[0], platform.clock())
