"""One platform, used as the README says, then hurt in every way it should survive; the tests run in this order."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_cli.up import processes
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, failed, family, serve_digits, traffic, until

pytestmark = pytest.mark.e2e

POLICY = """
name: quick
strategy: canary
steps:
  - weight: 20
    hold: 3s
    analysis: {minRequests: 30, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 1m}
  - weight: 100
    hold: 1s
scaleDownDelay: 1s
"""


def service(platform: Platform) -> dict[str, Any]:
    with platform.client() as client:
        return client.get("services/default/digits")


def events(platform: Platform) -> list[dict[str, Any]]:
    with platform.client() as client:
        return client.all("services/default/digits/events", limit=100)


def start_rollout(platform: Platform, request_id: str) -> dict[str, Any]:
    token = (platform.home / "token").read_text().strip()
    answer = httpx.post(
        f"{platform.url}/api/v1/services/default/digits/rollouts",
        json={"version": "2"},
        headers={"Authorization": f"Bearer {token}", "X-Request-ID": request_id},
        trust_env=False,
    )
    started: dict[str, Any] = answer.raise_for_status().json()
    return started


def ready(platform: Platform, replicas: int) -> bool:
    seen = service(platform)
    stable = next((row for row in seen["revisions"] if row["weight_actual"] == 100), None)
    return seen["phase"] == "Ready" and stable is not None and stable["replicas_ready"] == replicas


def infer(platform: Platform, example: list[int], rows: int = 1, **headers: str) -> httpx.Response:
    url = f"http://{platform.gateway}/serving/default/digits/v2/models/digits/infer"
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [rows, 64], "data": example * rows}
    return httpx.post(url, json={"inputs": [tensor]}, headers=headers, trust_env=False)


@pytest.fixture(scope="module")
def served(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Two versions pushed, version 1 served by two replicas: all by the command line."""
    with started(tmp_path_factory.mktemp("platform"), "--log-requests") as platform:
        serve_digits(platform, models, POLICY, replicas=2)
        until(lambda: ready(platform, 2), 60, "two replicas")
        yield platform


def test_the_model_answers(served: Platform, models: Path) -> None:
    training = json.loads((models / "training.json").read_text())

    answer = infer(served, training["example"])

    assert answer.status_code == 200
    assert answer.headers["fairlead-revision"] == "digits-00001"
    outputs = {each["name"]: each["data"] for each in answer.json()["outputs"]}
    assert outputs["label"] == [training["example_label"]]


def test_a_model_without_a_configuration_takes_the_rows_that_its_profile_found_good(
    served: Platform, models: Path
) -> None:
    example = json.loads((models / "training.json").read_text())["example"]
    with served.client() as client:
        version = client.get("models/digits/versions/1")
    rows = version["profile"]["max_batch_size"]
    assert version["signature"]["max_batch_size"] == rows > 4
    assert infer(served, example, rows).status_code == 200
    refused = infer(served, example, rows + 1)
    assert refused.status_code == 400
    assert f"found {rows + 1}; send fewer rows, or raise max_batch_size in its configuration" in refused.text


def test_a_request_for_a_model_is_found_in_its_replicas_log_by_its_id(served: Platform, models: Path) -> None:
    training = json.loads((models / "training.json").read_text())

    given = infer(served, training["example"], **{"x-request-id": "order-66"})
    made = infer(served, training["example"])

    assert given.headers["x-request-id"] == "order-66"
    for answer in (given, made):
        said = served.fairlead("services", "logs", "digits", "--request", answer.headers["x-request-id"]).stdout
        assert re.search(
            r"^digits-00001-[01] .+ model=digits call='POST \S+/infer' status=200 took_us=\d+$", said, re.M
        )
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(("models", "show", "nothing"), 1, "nothing", id="an unknown model"),
        pytest.param(("rollouts", "start", "digits", "--version", "1"), 1, "1", id="the version that is live already"),
        pytest.param(("rollouts", "start", "digits", "--version", "9"), 1, "9", id="an unknown version"),
        pytest.param(("models", "delete", "digits"), 1, "digits", id="a model in use"),
        pytest.param(("policies", "delete", "quick"), 1, "quick", id="a policy in use"),
    ],
)
def test_a_refusal_is_one_sentence(served: Platform, arguments: tuple[str, ...], code: int, complaint: str) -> None:
    done = served.fairlead(*arguments, check=False)

    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("flags", [pytest.param((), id="apply"), pytest.param(("--dry-run",), id="dry run")])
def test_a_misspelt_field_of_the_config_is_refused_when_the_file_is_applied(
    served: Platform, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    file = tmp_path / "service.yaml"
    model = "{modelFormat: {name: onnx}, storageUri: models:/digits/1, config: {dynamic_batching: {max_quue: 1}}}"
    file.write_text(
        "{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: typo}, "
        f"spec: {{predictor: {{model: {model}}}}}}}"
    )
    done = served.fairlead("services", "apply", "-f", str(file), *flags, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert "spec.predictor.model.config.dynamic_batching.max_quue: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_start_says_what_has_come_up(served: Platform) -> None:
    said = (served.home.parent / "up.log").read_text()
    for what in ("the database is prepared", "gateway answers", "web answers", "worker answers"):
        assert re.search(rf"^ +\d+\.\d s  {what}$", said, re.MULTILINE), said


def test_a_second_start_in_the_folder_names_the_first(served: Platform) -> None:
    done = subprocess.run(
        served.command, env=served.environment, capture_output=True, text=True, timeout=30, check=False
    )

    assert served.process is not None
    assert done.returncode == 1
    assert done.stderr.startswith(f"Fairlead is already running in {served.home} (process {served.process.pid}); ")
    assert done.stderr.count("\n") == 1


def test_a_taken_port_is_one_line(served: Platform, tmp_path: Path) -> None:
    other = Platform(tmp_path / ".fairlead", port=served.port)
    done = subprocess.run(other.command, env=other.environment, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 1
    web = served.record("web")["pid"]
    assert done.stderr.startswith(f"port {served.port} on 127.0.0.1 is taken by process {web} (")
    assert done.stderr.count("\n") == 1


def test_a_killed_replica_costs_no_request_but_those_it_had(served: Platform, models: Path, tmp_path: Path) -> None:
    replica = served.record("default.digits-00001-0")
    with traffic(served, models, tmp_path, "default/digits") as log:
        until(lambda: (log.read(), len(log.requests) > 30)[1], what="steady traffic")
        killed_at = time.time()
        os.kill(replica["pid"], signal.SIGKILL)
        until(lambda: served.record("default.digits-00001-0")["pid"] != replica["pid"], what="a new process")
        until(lambda: ready(served, 2), what="both replicas")
        count = len(log.requests)
        until(lambda: (log.read(), len(log.requests) > count + 100)[1], what="more traffic")

    lost = failed(log)
    # Each of the three protocols has one request at a time under way; closing a dead process's sockets takes a moment.
    assert len(lost) <= 3, lost
    assert all(request.at <= killed_at + 0.5 and request.ended_at >= killed_at for request in lost), lost
    until(lambda: any("restart" in event["kind"].lower() for event in events(served)), what="an event of the restart")


def test_a_worker_killed_in_the_middle_of_a_rollout_changes_nothing(
    served: Platform, models: Path, tmp_path: Path
) -> None:
    with traffic(served, models, tmp_path, "default/digits") as log, served.client() as client:
        rollout = start_rollout(served, request_id="order-67")
        until(lambda: client.get(f"rollouts/{rollout['id']}")["weight_actual"] == 20, what="the first step")
        killed = served.record("worker")["pid"]
        os.kill(killed, signal.SIGKILL)
        wait = ("--wait", "--timeout", "60", "-o", "json")
        done = served.fairlead("rollouts", "status", str(rollout["id"]), *wait, check=False)

    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert (ended["phase"], ended["weight_actual"]) == ("Healthy", 100)
    assert failed(log) == []
    assert served.record("worker")["pid"] != killed
    assert served.record("worker")["restarts"] == 1
    assert {request.revision for request in log.requests[-50:]} == {"digits-00002"}
    told = [event for event in events(served) if event["rollout"] == rollout["id"]]
    assert {event["request_id"] for event in told} == {"order-67"}
    said = served.fairlead("services", "logs", "digits", "--request", "order-67").stdout
    assert re.search(r"^worker .+ \[order-67\] default/digits: RolloutHealthy: ", said, re.M), said


def started_for_models(platform: Platform) -> dict[str, int]:
    """Return the running processes of the gateway and of the replicas by name."""
    names = [path.stem for path in (platform.home / "run").glob("*.json")]
    found = {name: platform.running(name) for name in names if name == "gateway" or "." in name}
    return {name: each["pid"] for name, each in found.items() if each is not None}


def test_a_killed_agent_costs_no_request(served: Platform, models: Path, tmp_path: Path) -> None:
    until(lambda: len(started_for_models(served)) == 3, what="the gateway and two replicas, no others of a rollout")
    before = started_for_models(served)
    assert "gateway" in before
    with traffic(served, models, tmp_path, "default/digits") as log:
        for restarts in (1, 2):
            killed = served.record("agent")["pid"]
            os.kill(killed, signal.SIGKILL)
            until(lambda killed=killed: served.record("agent")["pid"] != killed, what="a new agent")
            until(lambda: ready(served, 2), what="it looks after both replicas")
            assert served.record("agent")["restarts"] == restarts
            count = len(log.requests)
            until(lambda count=count: (log.read(), len(log.requests) > count + 100)[1], what="more traffic")
    assert failed(log) == []
    assert started_for_models(served) == before


def test_a_killed_gateway_is_started_again_at_once(served: Platform, models: Path, tmp_path: Path) -> None:
    gateway = served.record("gateway")["pid"]
    with traffic(served, models, tmp_path, "default/digits") as log:
        until(lambda: (log.read(), len(log.requests) > 1000)[1], what="it has served for longer than five seconds")
        killed_at = time.time()
        os.kill(gateway, signal.SIGKILL)
        until(lambda: served.record("gateway")["pid"] != gateway, what="a new one")
        count = len(log.requests)
        until(lambda: (log.read(), len(log.requests) > count + 100)[1], what="more traffic")
    back_at = min(request.ended_at for request in log.requests if request.ok and request.at > killed_at)
    print(f"the gateway was away for {back_at - killed_at:.3f} s and {len(failed(log))} requests")  # noqa: T201
    # A gRPC client that could not connect waits for a second or two by itself.
    late = [request for request in failed(log) if request.at > back_at + (5 if "grpc" in request.protocol else 0.5)]
    assert late == []
    assert back_at - killed_at < 2, "0.3 s on a machine that is not busy"


def test_nothing_outlives_a_killed_platform(served: Platform, models: Path) -> None:
    assert served.process is not None
    os.kill(served.record("agent")["pid"], signal.SIGKILL)
    served.process.kill()
    served.process.wait()
    until(lambda: family(served.home) == {}, what="the end of all that it had started")
    served.start()
    until(lambda: ready(served, 2), 60, "both replicas after the restart")


def test_the_readmes_files_are_accepted(served: Platform) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for name in ("policy", "service"):
        found = re.search(rf"```yaml\n(# {name}\.yaml\n.+?)```", readme, re.DOTALL)
        assert found is not None
        (served.home.parent / f"readme-{name}.yaml").write_text(found[1].replace("  name: digits", "  name: readme"))

    served.fairlead("policies", "apply", "-f", "readme-policy.yaml")
    served.fairlead("services", "apply", "-f", "readme-service.yaml")

    listed = served.fairlead("services", "list", "-o", "json").stdout
    assert [(row["name"], row["policy"]) for row in json.loads(listed)] == [("digits", "quick"), ("readme", "careful")]
    served.fairlead("services", "delete", "readme")


def test_what_a_killed_platform_left_is_ended_and_it_serves_again(served: Platform, models: Path) -> None:
    training = json.loads((models / "training.json").read_text())
    assert served.process is not None
    before = family(served.home)
    assert len(before) >= 6, before
    served.process.kill()
    served.process.wait()

    served.start()

    assert not set(before) & set(family(served.home))
    until(lambda: infer(served, training["example"]).status_code == 200, 60, "an answer after the restart")
    assert infer(served, training["example"]).headers["fairlead-revision"] == "digits-00002"
    until(lambda: ready(served, 2), 60, "both replicas after the restart")


def test_a_backup_of_the_running_platform_serves_in_another_folder(
    served: Platform, models: Path, tmp_path: Path
) -> None:
    training = json.loads((models / "training.json").read_text())
    archive, home = str(tmp_path / "backup.tar"), tmp_path / "restored" / ".fairlead"
    happened = len(events(served))
    served.fairlead("backup", archive)
    served.fairlead("restore", archive, "--home", str(home))
    restored = Platform(home)
    restored.start()
    try:
        until(lambda: infer(restored, training["example"]).status_code == 200, 60, "an answer of the restored platform")
        assert infer(restored, training["example"]).headers["fairlead-revision"] == "digits-00002"
        assert str(served.home) not in (home / "cluster" / "desired" / "default.digits.json").read_text()
        with restored.client() as client:
            assert client.get("whoami")["scope"] == "admin", "the token came along"
        assert len(events(restored)) >= happened
    finally:
        restored.stop()


def test_a_wrong_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    platform = Platform(tmp_path / ".fairlead")
    environment = platform.environment | {"FAIRLEAD_MAX_ARTIFACT_BYTES": "lots"}
    done = subprocess.run(platform.command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("`django prepare_home` failed: FAIRLEAD_MAX_ARTIFACT_BYTES is 'lots'; expected ")
    assert done.stderr.count("\n") == 1
    assert family(platform.home) == {}


def test_a_start_with_few_open_files_says_so_first(tmp_path: Path) -> None:
    platform = Platform(tmp_path / ".fairlead")
    few = ["bash", "-c", 'ulimit -n 40; exec "$@"', "up", *platform.command]
    with subprocess.Popen(few, env=platform.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert said.startswith("close to a limit: the platform takes 30 open files to start, and each process of the ")
    assert "start the platform after `ulimit -n 65536`" in said
    assert family(platform.home) == {}


def test_ctrl_c_ends_a_start_that_is_under_way(tmp_path: Path) -> None:
    platform = Platform(tmp_path / ".fairlead")
    with subprocess.Popen(
        platform.command, env=platform.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until((platform.home / "run" / "web.json").exists, within_s=120, what="the first part")
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=60)

    assert (process.returncode, complained) == (0, "")
    assert family(platform.home) == {}


def test_sigterm_leaves_no_process(served: Platform) -> None:
    left = {pid: processes.stat(pid) for pid in family(served.home)}

    assert served.stop() == 0

    assert family(served.home) == {}
    assert not [pid for pid, seen in left.items() if seen and processes.is_running(pid, seen.start_ticks)]
    assert list((served.home / "run").glob("*.json")) == []
    assert not (served.home / "endpoints.json").exists()
