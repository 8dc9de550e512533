"""The agent is killed and another takes its place: Envoy and the replicas go on, and clients notice nothing."""

import os
import signal
from typing import Any

import pytest

from common.process_identity import start_ticks
from integrations.clusters.base import Logged, Logger, Observed, ReplicaPhase
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.pid_files import read_record
from tests.integrations._support.runtimes import infer_json
from tests.serving_runtime._support.event_receiver import receiving

INFER = "/serving/default/digits/v2/models/digits/infer"
FIRST, SECOND = "default.digits-00001-0", "default.digits-00001-1"


@pytest.fixture
def held(cluster: Any) -> Any:
    """A cluster whose Envoy and replicas outlive the agent."""
    cluster.hold()
    return cluster


def pids(cluster: Any) -> dict[str, int]:
    found = {path.stem: read_record(path) for path in cluster.layout.run.glob("*.json")}
    return {name: record.pid for name, record in found.items() if record is not None and record.pid is not None}


def test_no_request_fails_while_the_agent_is_killed_and_another_goes_on(held, traffic, runtime, eventually):
    held.start(runtime=runtime)
    held.apply(1, held.revision(1, 60, 2), held.revision(2, 40))
    held.until_weights(r1=60, r2=40)
    held.until_ready(3)
    before, counted = pids(held), held.observe().revisions[0].gateway_since
    assert set(before) == {"gateway", FIRST, SECOND, "default.digits-00002-0"}
    with traffic(held.url) as sent:  # over HTTP and gRPC
        sent.until_sent(100)
        for _ in range(3):
            held.stop(signal.SIGKILL)
            sent.until_sent(200)
            held.start(runtime=runtime)
            sent.until_sent(100)
        held.until_weights(r1=60, r2=40)
        held.until_ready(3)
        assert pids(held) == before
        seen = held.observe()
        assert seen.revisions[0].gateway_since == counted
        assert {replica.restarts for revision in seen.revisions for replica in revision.replicas} == {0}
        held.apply(2, held.revision(2, 0), held.revision(3, 100))
        held.until_weights(r2=0, r3=100)
        held.until_ready(2)
        sent.until_sent(100)
    assert sent.failures == []
    assert "goes on with default.digits-00001-0, " in held.log()
    gateway = held.driver.inventory().components[0]
    assert (gateway.ready, gateway.restarts) == (True, 0)


def test_what_is_no_longer_wanted_is_drained_by_the_next_agent(held, traffic, eventually):
    held.start()
    held.apply(1, held.revision(1, 100, 2), held.revision(2, 0))
    held.until_weights(r1=100, r2=0)
    held.until_ready(3)
    before = pids(held)
    with traffic(held.url) as sent:
        held.stop(signal.SIGKILL)
        held.apply(2, held.revision(1, 100, 1))
        sent.until_sent(50)
        held.start()
        held.until_weights(r1=100)
        held.until_ready(1)
        sent.until_sent(50)
    assert sent.failures == []
    eventually(lambda: set(pids(held)) == {"gateway", FIRST}, "the others are gone")
    assert pids(held) == {name: before[name] for name in ("gateway", FIRST)}


def test_a_service_that_is_deleted_while_there_is_no_agent_goes(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100))
    held.until_weights(r1=100)
    held.stop(signal.SIGKILL)
    held.driver.delete("default", "digits", 2)
    held.start()
    eventually(lambda: set(pids(held)) == {"gateway"}, "its replica has ended")
    eventually(lambda: held.observe() == Observed("default", "digits"), "it is gone")
    assert held.request("/serving/default/digits/v2")[0] == 404
    assert list(held.layout.repositories.iterdir()) == []


def test_a_replica_that_ends_while_there_is_no_agent_is_started_by_the_next(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100, 2))
    held.until_ready(2)
    before = pids(held)
    held.stop(signal.SIGKILL)
    os.kill(before[FIRST], signal.SIGKILL)
    held.start()

    def again() -> Observed | None:
        seen = held.observe()
        return seen if [each.restarts for each in seen.revisions[0].replicas] == [1, 0] else None

    seen = eventually(again, "it is started again")
    held.until_ready(2)
    assert "ended by SIGKILL" in seen.revisions[0].replicas[0].message
    assert pids(held)[SECOND] == before[SECOND]


def test_a_gateway_that_ends_while_there_is_no_agent_is_started_by_the_next_with_all_that_it_knew(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100))
    held.until_weights(r1=100)
    before, url = pids(held), held.url
    held.stop(signal.SIGKILL)
    os.kill(before["gateway"], signal.SIGKILL)
    held.start()
    assert held.url == url
    answers = []
    eventually(lambda: answers.append(held.request(INFER, "POST", infer_json())[0]) or answers[-1] == 200, "it serves")
    held.until_weights(r1=100)
    assert pids(held)[FIRST] == before[FIRST]
    assert held.driver.inventory().components[0].restarts == 1


def test_a_replica_that_was_starting_is_ready_with_the_next_agent(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100), held.revision(2, 0, env={"MODEL_START": "never-ready"}))
    held.until_weights(r1=100, r2=0)
    starting = eventually(lambda: pids(held).get("default.digits-00002-0"), "the other has begun")
    held.stop(signal.SIGKILL)
    held.start()
    seen = held.until_weights(r1=100, r2=0)
    assert [replica.phase for each in seen.revisions for replica in each.replicas] == [
        ReplicaPhase.READY,
        ReplicaPhase.STARTING,
    ]
    assert pids(held)["default.digits-00002-0"] == starting


def test_a_stop_after_an_adoption_leaves_nothing(held):
    held.start()
    held.apply(1, held.revision(1, 100))
    held.until_weights(r1=100)
    held.stop(signal.SIGKILL)
    held.start()
    held.until_ready(1)
    assert held.stop() == 0
    assert held.processes() == {}
    assert held.records() == {}
    held.start()  # the holder is there, and holds nothing
    held.until_ready(1)


def test_all_ends_with_the_holder(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100))
    held.until_ready(1)
    os.kill(held.holder.pid, signal.SIGKILL)
    assert held.agent.wait(timeout=10) == 1
    held.agent = None
    eventually(lambda: not held.processes(), "the kernel ended what it held")
    assert "the holder has ended" in held.log()


def test_a_relay_goes_on_and_is_started_again_by_the_next_agent(held, runtime, eventually):
    with receiving() as receiver:
        held.start(runtime=runtime, egress="127.0.0.0/8")
        held.apply(1, held.revision(1, 100, logger=Logger(receiver.url, Logged.RESPONSE)))
        held.until_weights(r1=100)

        def post() -> None:
            posted = len(receiver.posts)
            assert held.request(INFER, "POST", infer_json())[0] == 200
            eventually(lambda: len(receiver.posts) > posted, f"it is posted: {held.log()}")

        post()
        before = pids(held)
        held.stop(signal.SIGKILL)
        post()
        held.start(runtime=runtime, egress="127.0.0.0/8")
        held.until_ready(1)
        assert pids(held) == before
        post()
        os.kill(before[f"{FIRST}.relay"], signal.SIGKILL)
        eventually(lambda: pids(held)[f"{FIRST}.relay"] != before[f"{FIRST}.relay"], "another one")
        post()
        assert pids(held)[FIRST] == before[FIRST]
        held.stop()


def test_what_no_agent_of_this_release_started_is_ended(held, eventually):
    held.start()
    held.apply(1, held.revision(1, 100))
    held.until_ready(1)
    held.stop(signal.SIGKILL)
    with (held.home / "other.log").open("ab") as output:
        other = Holder(held.channel).start("other", ["/bin/sleep", "60"], {}, [output.fileno()], {"unknown": 1})
    held.start()
    held.until_ready(1)
    assert "other of an earlier agent is ended" in held.log()
    assert start_ticks(other.pid) is None
