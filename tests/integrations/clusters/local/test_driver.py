"""The contract of a cluster driver, on the local one with a real agent, and what it does where no agent is."""

import json
import os
import threading
import time
from dataclasses import asdict, replace

import pytest

from common.errors import InvalidInput, NotFound, Unavailable
from common.process_identity import start_ticks
from integrations.clusters.base import (
    Component,
    Desired,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    SecretKeyRef,
)
from integrations.clusters.base.failures import MAX_LOG_LINES
from integrations.clusters.local.documents import cluster_status_to_json, observed_to_json, order_from_json
from integrations.clusters.local.driver import LocalDriver
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    ClusterStatus,
    read_json,
    secret_values,
    write_json,
    write_text,
)
from integrations.clusters.local.pid_files import ProcessRecord, write_record


def desired(cluster) -> Desired:
    return order_from_json(read_json(cluster.layout.desired_file("default", "digits"), DESIRED_SCHEMA)).desired


def say(cluster, *, heartbeat_at: float) -> None:
    status = ClusterStatus(heartbeat_at, 1, "http://127.0.0.1:1", (Component("gateway", True),))
    write_json(cluster.layout.cluster_status, cluster_status_to_json(status))


def test_a_service_from_nothing_to_nothing(cluster, eventually):
    """The contract: unknown, applied, observed, scaled, stopped but known, deleted."""
    cluster.start()
    assert cluster.observe() == Observed("default", "digits")
    cluster.driver.delete("default", "digits", 1)  # an unknown one is no error

    cluster.apply(1, cluster.revision(1, 100))
    seen = cluster.until_weights(r1=100)
    replica = seen.revisions[0].replicas[0]
    assert (seen.generation, replica.phase, replica.restarts, replica.message) == (1, ReplicaPhase.READY, 0, "")
    assert replica.metrics_url.startswith("http://127.0.0.1:")
    assert time.time() - 60 < (replica.started_at or 0) < time.time()

    cluster.apply(1, cluster.revision(1, 100))  # twice changes nothing
    cluster.apply(2, cluster.revision(1, 100, replicas=3))
    cluster.until_ready(3)
    assert cluster.observe().revisions[0].replicas[0] == replica
    cluster.apply(3, cluster.revision(1, 100, replicas=1))
    assert cluster.until_ready(1).revisions[0].replicas == (replica,)

    cluster.apply(4, cluster.revision(1, 0, replicas=0))
    eventually(lambda: cluster.observe().revisions[0].replicas == (), "no replica is left")
    assert [(each.name, each.weight_percent) for each in cluster.observe().revisions] == [("digits-00001", 0)]

    cluster.driver.delete("default", "digits", 5)
    eventually(lambda: cluster.observe() == Observed("default", "digits"), "it is forgotten")
    assert [component.name for component in cluster.driver.inventory().components] == ["gateway", "sandbox"]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        pytest.param(lambda cluster: None, "has not run in", id="no agent was ever started"),
        pytest.param(
            lambda cluster: say(cluster, heartbeat_at=time.time() - 11),
            "not been heard of for 11 s",
            id="a silent agent",
        ),
        pytest.param(
            lambda cluster: write_text(cluster.layout.cluster_status, "{"), "cannot be read", id="a damaged status"
        ),
    ],
)
def test_no_agent_is_unavailable(cluster, prepare, said):
    prepare(cluster)
    for ask in (cluster.observe, cluster.driver.inventory):
        with pytest.raises(Unavailable, match=said):
            ask()


def test_wishes_are_taken_without_an_agent(cluster):
    cluster.apply(3, cluster.revision(1, 100))
    assert desired(cluster) == Desired("default", "digits", 3, (cluster.revision(1, 100),))


def test_damaged_status_of_a_service_is_unavailable(cluster):
    say(cluster, heartbeat_at=time.time())
    write_text(cluster.layout.status_file("default", "digits"), "[]")
    with pytest.raises(Unavailable, match="status of default/digits cannot be read"):
        cluster.observe()


def test_lower_generation_is_ignored_and_a_damaged_wish_replaced(cluster):
    cluster.apply(3, cluster.revision(1, 100))
    cluster.apply(2, cluster.revision(2, 100))
    assert desired(cluster).generation == 3
    write_text(cluster.layout.desired_file("default", "digits"), "{")
    cluster.apply(1, cluster.revision(2, 100))
    assert desired(cluster).generation == 1


def test_same_wish_again_is_not_written(cluster):
    cluster.apply(1, cluster.revision(1, 100))
    before = cluster.layout.desired_file("default", "digits").stat()
    cluster.apply(1, cluster.revision(1, 100))
    assert cluster.layout.desired_file("default", "digits").stat().st_ino == before.st_ino
    cluster.apply(1, cluster.revision(1, 100, replicas=2))
    assert desired(cluster).revisions[0].replicas == 2


def test_highest_generation_wins_among_many_writers(cluster):
    revision = cluster.revision(1, 100)
    driver = LocalDriver(cluster.layout.cluster)

    def write(first: int) -> None:
        for generation in range(first, 60, 6):
            driver.apply(Desired("default", "digits", generation, (replace(revision, replicas=generation),)))

    writers = [threading.Thread(target=write, args=(first,)) for first in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (desired(cluster).generation, desired(cluster).revisions[0].replicas) == (59, 59)
    assert [path.name for path in cluster.layout.desired.iterdir()] == ["default.digits.json"]


@pytest.mark.parametrize("name", ["../digits", "a.b", "Digits", "a/b", ""])
def test_name_that_is_no_label_never_becomes_a_path(cluster, name):
    for wish in (Desired("default", name, 1, ()), Desired(name, "digits", 1, ())):
        with pytest.raises(InvalidInput, match="must be a DNS label"):
            cluster.driver.apply(wish)
    with pytest.raises(InvalidInput, match="must be a DNS label"):
        cluster.apply(1, replace(cluster.revision(1, 100), name=name))
    assert not cluster.layout.desired.exists() or list(cluster.layout.desired.iterdir()) == []


def test_inventory_tells_of_what_the_command_line_started(cluster):
    say(cluster, heartbeat_at=time.time())
    alive = ProcessRecord(os.getpid(), start_ticks(os.getpid()), 2, "it ended by SIGKILL")
    write_record(cluster.layout.run / "web.json", alive)
    (cluster.layout.run / "worker.json").write_text(json.dumps({**asdict(alive), "pid": None, "start_ticks": None}))
    assert cluster.driver.inventory().components == (
        Component("gateway", True),
        Component("web", True, 2, "it ended by SIGKILL"),
        Component("worker", False, 2, "it ended by SIGKILL"),
    )


def test_unwritable_folder_is_unavailable(tmp_path):
    (tmp_path / "cluster").write_text("a file, no folder")
    with pytest.raises(Unavailable, match="cannot be written"):
        LocalDriver(tmp_path / "cluster").apply(Desired("default", "digits", 1, ()))


def test_the_last_lines_of_a_replica_are_read_without_what_its_environment_holds(cluster):
    revision = replace(cluster.revision(1, 100), env={"API_TOKEN": "s3cr3t-value"})
    cluster.apply(1, revision)
    say(cluster, heartbeat_at=time.time())
    replicas = (ObservedReplica("digits-00001-0", ReplicaPhase.READY),)
    seen = Observed("default", "digits", 1, (ObservedRevision("digits-00001", 100, replicas),))
    write_json(cluster.layout.status_file("default", "digits"), observed_to_json(seen))
    assert cluster.driver.log("default", "digits", "digits-00001-0") == (), "it has said nothing yet"
    write_text(cluster.layout.logs / "default.digits-00001-0.log", "first\n" * 5000 + "token s3cr3t-value\nlast\n")
    write_text(cluster.layout.logs / "agent.log", "of the agent")

    lines = cluster.driver.log("default", "digits", "digits-00001-0")

    assert lines[-2:] == ("token $(API_TOKEN)", "last")
    assert len(lines) == MAX_LOG_LINES
    for other in ("digits-00002-0", "../logs/agent", "agent"):
        with pytest.raises(NotFound, match="has no replica"):
            cluster.driver.log("default", "digits", other)


def test_values_of_secrets_are_read_while_nobody_else_passes_any(cluster):
    """A slow worker's values were read before another's; they are in the file before them too."""
    driver, stored = cluster.driver, lambda: secret_values(cluster.layout, "default", "digits")
    is_reading, may_go_on = threading.Event(), threading.Event()

    def slowly():
        is_reading.set()
        assert may_go_on.wait(20)
        return {"a": {"k": "older"}}

    slow = threading.Thread(target=driver.apply_secrets, args=("default", "digits", slowly))
    slow.start()
    assert is_reading.wait(20)
    fast = threading.Thread(target=driver.apply_secrets, args=("default", "digits", lambda: {"a": {"k": "newer"}}))
    fast.start()
    named = cluster.revision(1, 100, secret_env={"TOKEN": SecretKeyRef("a", "k")})
    cluster.apply(1, named)  # the desired files, and so the agent, wait for neither
    fast.join(0.1)
    assert fast.is_alive()
    may_go_on.set()
    slow.join(20)
    fast.join(20)
    assert stored() == {"a": {"k": "newer"}}

    def too_late():
        raise NotFound("the lease is another's")

    with pytest.raises(NotFound):
        driver.apply_secrets("default", "digits", too_late)
    assert stored() == {"a": {"k": "newer"}}
    driver.delete("default", "digits", 0)  # of a worker that is later still
    assert stored() == {"a": {"k": "newer"}}
    driver.delete("default", "digits", 2)
    assert stored() == {}
