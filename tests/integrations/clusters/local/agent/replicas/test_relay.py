"""What a replica posts to, which way, and the relay that the agent keeps beside it."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import Logged, Logger
from integrations.clusters.local.agent.replicas.relay import Outgoing, outgoing
from integrations.clusters.local.agent.sockets import replicas_folder
from integrations.relay.start import Target
from serving_runtime.shared.egress import EgressRefusedError, networks, permitted
from tests.integrations._support.runtimes import RUNTIME, infer_json, until
from tests.serving_runtime._support.event_receiver import Receiver, receiving

LOGGER = Logger("https://receiver.example/events", Logged.ALL)
TRACES = (
    *("serve", "--trace-config", "mode=opentelemetry"),
    "--trace-config=opentelemetry,url=http://collector:4318/v1/traces",
)
INFER = "/serving/default/digits/v2/models/digits/infer"


def found(
    logger: Logger | None, runtime: tuple[str, ...], *, relays: bool = True, **environ: str
) -> tuple[list[tuple[str, int]], bool]:
    posts = outgoing(logger, runtime, (), relays=relays, environ=environ)
    return [(outlet.target.host, outlet.target.port) for outlet in posts.relayed], posts.direct


@pytest.mark.parametrize(
    ("logger", "runtime", "expected"),
    [
        pytest.param(None, ("serve",), [], id="nothing"),
        pytest.param(LOGGER, ("serve",), [("receiver.example", 443)], id="a logger, at its scheme's port"),
        pytest.param(Logger("http://[fd00::1]:81/", Logged.ALL), ("serve",), [("fd00::1", 81)], id="IPv6"),
        pytest.param(
            Logger("http://münchen.example/", Logged.ALL), ("serve",), [("xn--mnchen-3ya.example", 80)], id="IDN"
        ),
        pytest.param(LOGGER, TRACES, [("receiver.example", 443), ("collector", 4318)], id="a logger and traces"),
        pytest.param(None, (*TRACES, "--trace-config=mode=triton"), [], id="traces in a file"),
        pytest.param(None, ("serve", "--trace-config=mode=opentelemetry"), [("localhost", 4318)], id="by default"),
        pytest.param(None, (*TRACES, "--trace-config=opentelemetry,url=here:1/x"), [("here", 1)], id="the last URL"),
    ],
)
def test_what_a_replica_posts_to_is_relayed(
    logger: Logger | None, runtime: tuple[str, ...], expected: list[tuple[str, int]]
) -> None:
    assert found(logger, runtime) == (expected, False)
    assert found(logger, runtime, relays=False) == ([], bool(expected))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HTTP_PROXY": "http://proxy:3128"}, True, id="a proxy of the scheme"),
        pytest.param({"all_proxy": "http://proxy:3128"}, True, id="of all schemes"),
        pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, False, id="of another scheme"),
        pytest.param({"HTTP_PROXY": "http://proxy:3128", "no_proxy": "collector"}, False, id="of other hosts"),
    ],
)
def test_traces_that_go_through_a_proxy_stay_the_runtimes(environ: dict[str, str], expected: bool) -> None:
    relayed, direct = found(LOGGER, TRACES, **environ)
    assert (relayed[0], direct) == (("receiver.example", 443), expected)
    assert len(relayed) == (1 if expected else 2)


def test_an_operators_collector_may_be_near_but_not_at_metadata() -> None:
    (collector,) = outgoing(None, TRACES, (), relays=True, environ={}).relayed
    for address in ("127.0.0.1", "::1", "10.1.2.3", "93.184.215.14"):
        assert permitted("collector", [address], collector.target.allowed) == [address]
    with pytest.raises(EgressRefusedError):
        permitted("collector", ["169.254.169.254"], collector.target.allowed)


def test_a_loggers_networks_are_those_that_the_operator_allows() -> None:
    allowed = networks("10.0.0.0/8")
    posts = outgoing(LOGGER, ("serve",), allowed, relays=True, environ={})
    assert posts == Outgoing((posts.relayed[0],))
    assert posts.relayed[0].target == Target("receiver.example", 443, allowed)


@pytest.fixture
def logged(cluster: Any) -> Any:
    """A cluster with a service whose replica posts to a receiver at 127.0.0.1, which is allowed."""
    with receiving() as receiver:
        cluster.start(runtime=RUNTIME, egress="127.0.0.0/8")
        cluster.apply(1, cluster.revision(1, 100, logger=Logger(receiver.url, Logged.RESPONSE)))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        yield cluster, receiver
        if cluster.agent is not None:
            cluster.stop()


def network(pid: int) -> Path:
    """Return which network a process sees."""
    return Path(f"/proc/{pid}/ns/net").readlink()


def infer_until_posted(cluster: Any, receiver: Receiver) -> None:
    posted = len(receiver.posts)
    assert cluster.request(INFER, "POST", infer_json())[0] == 200
    until(lambda: len(receiver.posts) == posted + 1, f"it is posted: {cluster.log()}")


def test_a_relay_that_ends_is_started_again_and_goes_with_its_replica(logged: Any) -> None:
    cluster, receiver = logged
    infer_until_posted(cluster, receiver)
    relay, replica = cluster.pid("default.digits-00001-0.relay"), cluster.pid("default.digits-00001-0")
    assert network(replica) != network(os.getpid())
    os.kill(relay, signal.SIGKILL)
    until(lambda: cluster.pid("default.digits-00001-0.relay") != relay, "another one")
    infer_until_posted(cluster, receiver)
    assert cluster.pid("default.digits-00001-0") == replica
    os.kill(replica, signal.SIGKILL)
    until(lambda: cluster.pid("default.digits-00001-0") != replica, "another one")
    cluster.until_ready(1)
    until(lambda: cluster.request(INFER, "POST", infer_json())[0] == 200, "it is routed")
    until(lambda: len(receiver.posts) >= 3, "it is posted")
    assert [name for name in cluster.records() if name.endswith(".relay")] == ["default.digits-00001-0.relay"]
    cluster.apply(2)
    until(lambda: not [name for name in cluster.records() if name != "gateway"], "all of it is gone")
    assert not list(replicas_folder(cluster.layout).iterdir())


def test_what_a_killed_agent_leaves_is_ended(logged: Any) -> None:
    cluster, _ = logged
    cluster.stop(signal.SIGKILL)
    until(lambda: not [line for line in cluster.processes() if "relay" in line], "its relay ends with it")


def test_traces_reach_a_collector_from_a_replica_without_a_network(cluster: Any) -> None:
    with receiving() as collector:
        settings = (
            *("mode=opentelemetry", f"opentelemetry,url={collector.url}", "level=TIMESTAMPS", "rate=1"),
            "opentelemetry,bsp_schedule_delay=20",
        )
        cluster.start(runtime=" ".join([RUNTIME, *(f"--trace-config={each}" for each in settings)]))
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        assert cluster.request(INFER, "POST", infer_json())[0] == 200
        until(lambda: any(b"InferRequest" in body for _, body in list(collector.posts)), f"spans come: {cluster.log()}")
        replica = cluster.pid("default.digits-00001-0")
        assert network(replica) != network(os.getpid())
        cluster.stop()
