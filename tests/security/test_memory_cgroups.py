"""A model that takes more memory than it may, between two looks of the watchdog: the kernel refuses it."""

import json
import os
import signal
from pathlib import Path

import pytest

from common.process_identity import start_ticks
from integrations.clusters.base import FailureReason
from integrations.clusters.local.agent.replicas.replica_memory import find_groups
from integrations.sandbox.memory_cgroup import place_of
from tests.integrations._support.runtimes import Cluster, until
from tests.security._support.growing import (
    STARTED,
    ask,
    failure_of,
    shown_of_sandbox,
    start_with_another,
    those_that_stay,
)

FLAGS = ["--memory-limit=requests"]


@pytest.fixture(autouse=True)
def _groups(tmp_path: Path) -> None:
    groups, said = find_groups(tmp_path)
    if groups is None:
        pytest.skip(said)
    groups.close()


def group_of(pid: int) -> Path:
    """Return the folder of the memory cgroup of a process."""
    place = place_of(Path(f"/proc/{pid}/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    assert place is not None
    return place.folder


def test_a_model_that_takes_too_much_for_a_moment_is_ended_and_the_others_go_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=STARTED, flags=FLAGS)
        stay = start_with_another(cluster)
        groups = {group_of(cluster.pid(name)) for name in ("default.digits-00001-0", "default.other-00001-0")}
        (all_of_agent,) = {group.parent for group in groups}
        assert len(groups) == 2
        until(lambda: ask(cluster, 0)[0] == 200, "it serves")
        assert "; the memory of replicas is limited by cgroups (version " in shown_of_sandbox(cluster)
        assert ask(cluster, 5)[0] != 200
        failure = until(lambda: failure_of(cluster), "it is ended")
        assert (failure.reason, failure.exit_code) == (FailureReason.OUT_OF_MEMORY, 137)
        assert failure.message == "it used 512 MiB of memory, where it may have 512 MiB, asked for more, and was killed"
        assert those_that_stay(cluster) == stay
        cluster.until_ready(1)
        now = {group_of(cluster.pid(name)) for name in ("default.digits-00001-0", "default.other-00001-0")}
        assert {path for path in all_of_agent.iterdir() if path.is_dir()} == now
        assert len(now | groups) == 3
    finally:
        cluster.close()
    assert not all_of_agent.exists()


def test_a_model_changes_no_cgroup(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=STARTED, flags=FLAGS)
        start_with_another(cluster)
        status, body = ask(cluster, 6)
        assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [0.0])
    finally:
        cluster.close()


def test_what_a_model_left_running_when_its_agent_was_killed_has_ended_at_the_next_start(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=STARTED, flags=FLAGS)
        start_with_another(cluster)
        replica = cluster.pid("default.digits-00001-0")
        group = group_of(replica)
        assert ask(cluster, 7)[0] == 200
        left = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
        worker_and_other = [pid for pid in left if os.getsid(pid) not in (os.getsid(replica), os.getsid(0))]
        assert len(worker_and_other) == 2
        cluster.stop(signal.SIGKILL)
        until(lambda: start_ticks(replica) is None, "the replica ends with its agent")
        cluster.start(runtime=STARTED, flags=FLAGS)
        assert [start_ticks(pid) for pid in left] == [None] * len(left)
        cluster.until_ready(1)
    finally:
        cluster.close()
