"""The agent with real Envoy and real replica processes: what clients see while things change or die."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from common.process_identity import start_ticks
from integrations.artifacts.store import folder_of
from integrations.clusters.base import CallerKeys, Desired, Limits, Observed, ReplicaPhase
from integrations.clusters.local.files import write_text
from integrations.clusters.local.pid_files import ProcessRecord, write_record
from integrations.machine.limits import NAMES
from integrations.metrics.counters import collect
from tests.integrations._support.runtimes import infer_json, until


def test_no_request_fails_while_weights_change_twenty_times(cluster, traffic, runtime):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    with traffic(cluster.url) as sent:
        for generation, weight in enumerate([5, 10, 25, 50, 75, 90, 100, 40, 0, 60] * 2, start=2):
            cluster.apply(generation, cluster.revision(1, 100 - weight), cluster.revision(2, weight))
            cluster.until_weights(r1=100 - weight, r2=weight)
            sent.until_sent(20)
        cluster.apply(22, cluster.revision(2, 100))
        cluster.until_weights(r2=100)
        sent.until_sent(20)
        cluster.until_ready(1)
    assert sent.failures == []
    assert set(sent.by_revision()) == {"digits-00001", "digits-00002"}


def test_clients_get_the_share_that_was_asked_for_and_all_is_counted(cluster, traffic, runtime):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 75), cluster.revision(2, 25))
    cluster.until_weights(r1=75, r2=25)
    with traffic(cluster.url, pause_s=0) as sent:
        sent.until_sent(2000)
    seen = sent.by_revision()
    assert sent.failures == []
    assert seen["digits-00002"] / seen.total() == pytest.approx(0.25, abs=0.05)  # 0.01 is one standard deviation
    samples = {(each.source == "gateway", each.revision): each for each in collect(cluster.observe())}
    for name, requests in seen.items():
        gateway, replica = samples[True, name], samples[False, name]
        assert (gateway.requests, gateway.client_errors, gateway.server_errors) == (requests, 0, 0)
        assert (replica.requests, replica.client_errors, replica.server_errors) == (requests, 0, 0)
        assert sum(replica.latency_counts) == requests
        assert (replica.latency_edges_us[0], len(replica.latency_counts)) == (50, len(replica.latency_edges_us) + 1)


def test_weight_stays_with_what_is_ready(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 90), cluster.revision(2, 10, env={"MODEL_START": "never-ready"}))
    seen = cluster.until_weights(r1=100, r2=0)
    assert "digits-00002 (10 %)" in seen.message
    assert cluster.request("/serving/default/digits/v2")[0] == 200


def test_requests_stay_where_they_are_until_what_shall_get_them_is_ready(cluster, traffic, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    with traffic(cluster.url) as sent:
        cluster.apply(2, cluster.revision(2, 100, env={"MODEL_START": "never-ready"}))
        seen = cluster.until_weights(r1=100, r2=0)
        assert seen.message == "no replica is ready of digits-00002 (100 %); the requests go to the other revisions"
        cluster.apply(3, cluster.revision(3, 100))
        cluster.until_weights(r3=100)
    assert sent.failures == []


def test_replica_killed_under_traffic_is_restarted_and_only_its_requests_in_flight_fail(
    cluster, traffic, eventually, runtime
):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100, replicas=2))
    cluster.until_ready(2)
    with traffic(cluster.url) as sent:
        sent.until_sent(100)
        os.kill(cluster.pid("default.digits-00001-0"), signal.SIGKILL)

        def restarted() -> Observed | None:
            seen = cluster.observe()
            return seen if [each.restarts for each in seen.revisions[0].replicas] == [1, 0] else None

        seen = eventually(restarted, "the restart is told")
        cluster.until_ready(2)
        sent.until_sent(100)
    # Of each of the four clients the one in flight, and one more sent before Envoy came to read that the process ended.
    assert len(sent.failures) <= 8, sent.failures
    assert "SIGKILL" in seen.revisions[0].replicas[0].message


def test_replica_that_does_not_answer_is_restarted(cluster, eventually):
    cluster.start(probe_timeout_s=0.2, probe_failures=2)
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_ready(1)
    os.kill(cluster.pid("default.digits-00001-0"), signal.SIGSTOP)
    eventually(lambda: cluster.observe().revisions[0].replicas[0].restarts == 1, "it is started again")
    seen = cluster.until_ready(1)
    assert "did not answer 2 health checks" in seen.revisions[0].replicas[0].message


def test_a_gateway_that_answers_nothing_for_long_is_killed_and_started_again(cluster, eventually):
    cluster.start(probe_failures=1, gateway_silent_s=1.0)
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    hung = cluster.pid("gateway")
    os.kill(hung, signal.SIGSTOP)
    eventually(lambda: cluster.pid("gateway") != hung, "another one is started")
    eventually(lambda: cluster.status()["components"][0]["ready"], "it is ready")
    cluster.until_weights(r1=100)
    assert "did not answer for 1 s and was killed" in cluster.log()


def test_a_gateway_that_is_only_slow_is_left_to_serve(cluster, eventually):
    cluster.start(probe_failures=1, gateway_s=4.0)  # by then a look at it has failed, too
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    slow = cluster.pid("gateway")
    os.kill(slow, signal.SIGSTOP)
    cluster.apply(2, cluster.revision(1, 100), cluster.revision(2, 0))
    eventually(lambda: "did not take up" in cluster.log(), "the agent complains")
    os.kill(slow, signal.SIGCONT)
    eventually(lambda: cluster.request("/serving/default/digits/v2")[0] == 200, "it serves")
    assert cluster.pid("gateway") == slow


def test_revision_that_cannot_start_says_why_and_backs_off(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100, env={"MODEL_START": "fail"}))

    def failing() -> Observed | None:
        seen = cluster.observe()
        replicas = seen.revisions[0].replicas if seen.revisions else ()
        return seen if replicas and replicas[0].restarts and replicas[0].phase is ReplicaPhase.BACKING_OFF else None

    seen = eventually(failing, "it was started again and backs off")
    assert "exit code 3" in seen.revisions[0].message
    assert "cannot load the model: as asked" in seen.revisions[0].message
    status, headers, body = cluster.request("/serving/default/digits/v2/models/digits/infer", "POST", b"{}")
    assert (status, headers["content-type"]) == (503, "application/json")
    assert json.loads(body)["error"].startswith("service default/digits is starting")


def test_a_stopped_service_says_that_it_is_stopped_until_it_is_resumed(cluster, eventually):
    def answered() -> tuple[int, str]:
        status, _, body = cluster.request("/serving/default/digits/v2/models/digits/infer", "POST", b"{}")
        return status, body.decode()

    cluster.start()
    revision = cluster.revision(1, 100)
    cluster.apply(1, revision)
    cluster.until_ready(1)
    cluster.apply(2, replace(revision, replicas=0))
    eventually(lambda: "service default/digits is stopped" in answered()[1], "clients are told so")
    assert answered()[0] == 503
    cluster.apply(3, revision)
    eventually(lambda: answered()[0] == 200, "it serves again")


def test_artifact_that_is_gone_or_changed_is_told(cluster, eventually):
    cluster.start()
    cluster.apply(1, replace(cluster.revision(1, 100), artifact_digest="sha256:" + "0" * 64))
    eventually(
        lambda: "was changed on disk" in "".join(each.message for each in cluster.observe().revisions), "it says so"
    )


def test_a_model_that_can_never_be_laid_out_is_refused_for_good(cluster, eventually):
    cluster.start()
    cluster.apply(1, replace(cluster.revision(1, 100), artifact_uri="s3://bucket/model"))
    failure = eventually(lambda: next((each.last_failure for each in cluster.observe().revisions), None), "it fails")
    assert (failure.is_final, "file:///absolute/path" in failure.message) == (True, True)


def test_artifact_that_changes_while_it_is_served_is_told_when_a_replica_is_started_again(cluster, eventually):
    cluster.start()
    revision = cluster.revision(1, 100)
    cluster.apply(1, revision)
    cluster.until_ready(1)
    file = next(path for path in folder_of(revision.artifact_uri).rglob("*") if path.is_file())
    content = file.read_bytes()
    file.unlink()  # what the repository links to stays as it was
    file.write_bytes(b"other")
    os.kill(cluster.pid("default.digits-00001-0"), signal.SIGKILL)

    def told() -> bool:
        return "was changed on disk: expected sha256" in cluster.observe().revisions[0].replicas[0].message

    eventually(told, "it is told")
    file.write_bytes(content)
    cluster.until_ready(1)


def test_request_in_flight_is_finished_when_its_revision_goes(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    parts = cluster.url.removeprefix("http://").split(":")
    with socket.create_connection((parts[0], int(parts[1]))) as slow:
        path = "/serving/default/digits/v2/models/digits/infer"
        slow.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\nx-do: sleep=1.5\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        cluster.apply(2, cluster.revision(2, 100))
        cluster.until_weights(r2=100, r1=0)
        assert cluster.observe().revision("digits-00001").replicas[0].phase is ReplicaPhase.DRAINING
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
    cluster.until_weights(r2=100)
    assert cluster.observe().revision("digits-00001") is None


def test_lower_generation_and_broken_file_change_nothing(cluster, eventually):
    cluster.start()
    cluster.apply(5, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    cluster.apply(4, cluster.revision(2, 100))
    write_text(cluster.layout.desired_file("default", "other"), "{ no json")
    eventually(lambda: "is ignored" in cluster.driver.observe("default", "other").message, "the broken file is told")
    assert cluster.until_weights(r1=100).generation == 5


def test_deleted_service_is_forgotten_and_may_come_back(cluster, eventually):
    cluster.start()
    cluster.apply(3, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    cluster.driver.delete("default", "digits", 4)
    eventually(lambda: cluster.observe() == Observed("default", "digits"), "it is gone")
    assert cluster.request("/serving/default/digits/v2")[0] == 404
    assert list(cluster.layout.repositories.iterdir()) == []
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)


def test_killed_gateway_comes_back_with_its_routes(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 60), cluster.revision(2, 40))
    cluster.until_weights(r1=60, r2=40)
    address = cluster.url
    os.kill(cluster.pid("gateway"), signal.SIGKILL)
    eventually(lambda: cluster.driver.inventory().components[0].restarts == 1, "the restart is told")
    cluster.until_weights(r1=60, r2=40)
    assert cluster.url == address
    assert cluster.request("/serving/default/digits/v2")[0] == 200
    gateway = cluster.driver.inventory().components[0]
    assert (gateway.name, gateway.ready) == ("gateway", True)
    assert "SIGKILL" in gateway.message


def test_limits_of_the_machine_are_reported_and_name_the_gateway_once_it_is_close(cluster, eventually):
    cluster.start(limits_s=0.2)
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    eventually(
        lambda: [limit.name for limit in cluster.driver.inventory().limits] == list(NAMES), "limits are reported"
    )
    gateway = cluster.pid("gateway")
    used = len(list(Path(f"/proc/{gateway}/fd").iterdir()))
    resource.prlimit(gateway, resource.RLIMIT_NOFILE, (used * 100 // 85, used * 100 // 85))
    eventually(lambda: cluster.driver.inventory().limits[0].level != "fine", "the gateway is close to its limit")
    close = cluster.driver.inventory().limits[0]
    assert (close.name, close.whose) == ("open files", "gateway")
    assert close.sentence.startswith(f"gateway uses {close.used} of {used * 100 // 85} open files; at the limit ")
    finding = next(each for each in cluster.driver.findings(()) if each.about == "open files")
    assert "ulimit -n" in finding.remedy


def test_a_service_is_starting_and_not_unknown_from_the_gateways_first_answer_on(cluster):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_ready(1)
    address = cluster.url.removeprefix("http://")
    cluster.stop()
    answers: list[int] = []

    def ask() -> None:
        while 200 not in answers:
            with suppress(OSError):  # nobody listens yet
                answers.append(cluster.request("/serving/default/digits/v2")[0])

    asking = Thread(target=ask, daemon=True)
    asking.start()
    cluster.start(address=address)
    asking.join(60)
    assert answers[-1] == 200
    assert set(answers) <= {200, 503}


def test_agent_killed_takes_all_with_it_and_a_new_one_serves_again(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100, replicas=2))
    cluster.until_ready(2)
    assert len(cluster.processes()) == 3
    cluster.stop(signal.SIGKILL)
    eventually(lambda: not cluster.processes(), "the kernel ended what the agent had started")
    cluster.start()
    cluster.until_ready(2)
    assert cluster.request("/serving/default/digits/v2")[0] == 200
    assert len(cluster.processes()) == 3


def test_leftovers_of_a_killed_agent_are_ended_at_the_next_start(cluster):
    cluster.start()
    cluster.stop()
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    try:
        for name, process, shift in (("default.left-00001-0", left, 0), ("default.other-00001-0", other, -1)):
            record = ProcessRecord(process.pid, start_ticks(process.pid) + shift, started_by="agent")
            write_record(cluster.layout.run / f"{name}.json", record)
        cluster.start()
        assert left.wait(timeout=10) == -signal.SIGTERM
        assert other.poll() is None  # the same id, but another process
        assert "default.left-00001-0" in cluster.log()
    finally:
        for process in (left, other):
            process.kill()
            process.communicate()


@pytest.mark.parametrize("content", [b"garbage", b'{"schema": "fairlead.observed/v1"}', b"", None])
def test_garbage_in_what_the_agent_wrote_heals_within_ten_seconds(cluster, content):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    places = [
        cluster.layout.status_file("default", "digits"),
        cluster.layout.cluster_status,
        cluster.layout.run / "gateway.json",
    ]
    before = [sorted(json.loads(place.read_bytes())) for place in places]
    for place in places:
        place.unlink() if content is None else place.write_bytes(content)

    def healed() -> bool:
        with suppress(FileNotFoundError, ValueError):
            return [sorted(json.loads(place.read_bytes())) for place in places] == before
        return False

    until(healed, "all is written again", 10.0)
    assert cluster.observe().revisions[0].ready_replicas == 1


def test_sigterm_finishes_requests_and_leaves_nothing(cluster):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    parts = cluster.url.removeprefix("http://").split(":")
    with socket.create_connection((parts[0], int(parts[1]))) as slow:
        path = "/serving/default/digits/v2/models/digits/infer"
        slow.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\nx-do: sleep=0.5\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        assert cluster.request("/serving/default/digits/v2")[0] == 200  # by now the first one is in flight too
        assert cluster.stop() == 0
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
    assert cluster.processes() == {}
    assert cluster.records() == {}


@pytest.mark.parametrize(
    ("taken", "sentence"),
    [
        pytest.param(True, "the gateway cannot listen on 127.0.0.1:", id="a taken port is one line and exit code 1"),
        pytest.param(
            False, "an agent already runs in", id="a second agent in the same folder is one line and exit code 1"
        ),
    ],
)
def test_refusal_to_start(cluster, taken, sentence):
    if not taken:
        cluster.start()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-m", "integrations.clusters.local.agent", "--home", str(cluster.home)]
        command += ["--gateway-address", f"127.0.0.1:{port}"]
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=20, cwd=cluster.home, env=_env()
        )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert sentence in ended.stderr


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_services_of_two_namespaces_are_each_routed_to_their_own(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    cats = replace(cluster.revision(1, 100, content=b"cats"), name="cats-00001", model_name="cats")
    cluster.driver.apply(Desired("zoo", "cats", 1, (cats,)))
    cluster.until_weights(r1=100)
    eventually(
        lambda: [each.weight_percent for each in cluster.driver.observe("zoo", "cats").revisions] == [100], "cats serve"
    )
    assert json.loads(cluster.request("/serving/zoo/cats/v2/models/cats")[2])["model"] == "cats"
    assert json.loads(cluster.request("/serving/default/digits/v2/models/digits")[2])["model"] == "digits"
    assert cluster.request("/serving/default/cats/v2")[0] == 404


def test_a_limit_of_rows_refuses_until_it_ends_or_the_agent_begins_again(cluster, eventually):
    def limited(generation: int, limits: Limits) -> None:
        cluster.driver.apply(Desired("default", "digits", generation, (cluster.revision(1, 100),), limits=limits))

    def status() -> int:
        return cluster.request("/serving/default/digits/v2/models/digits/infer", "POST", infer_json())[0]

    cluster.hold()
    cluster.start()
    limited(1, Limits(rows_per_minute=3))
    cluster.until_weights(r1=100)
    eventually(lambda: status() == 429, "three rows are counted, and further ones refused")
    limited(2, Limits())
    eventually(lambda: status() == 200, "the limit has ended")
    limited(3, Limits(caller_rows_per_minute=1))
    envoy = cluster.pid("gateway")
    eventually(lambda: status() == 429, "a row of the caller is counted")
    cluster.stop(signal.SIGKILL)
    assert status() == 429
    cluster.start()
    eventually(lambda: status() == 200, "the new agent forgets the minute")
    eventually(lambda: status() == 429, "and counts it")
    cluster.driver.apply_keys(CallerKeys(exhausted_services=("default/digits",)), ())
    eventually(lambda: cluster.request("/serving/default/digits/v2")[0] == 429, "its quota is used up")
    assert cluster.pid("gateway") == envoy
