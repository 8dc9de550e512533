"""The two walks of `docs/architecture.md`: its tables name exactly the modules that a request and a rollout go through.

A module is on the way if it is on the call stack at one of the marked functions: where bytes, values or rows change
hands. What a module calls and gets an answer from is not on the way. So the tables are what a newcomer opens, and their
lengths may not grow.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from tests.deployments._support.platform import Platform
from tests.nets._support.call_stacks import ROOT, recorded
from tests.serving_runtime import onnx_models

_START_S = 120.0
MOST_OF_A_REQUEST, MOST_OF_A_ROLLOUT = 14, 30
OF_A_REQUEST = (
    "protocol/http/codec/infer.py:decode",
    "scheduler/scheduler.py:submit",
    "scheduler/execution/execution.py:execute",
    "protocol/http/codec/infer.py:encode",
    "protocol/http/wire/response_writer.py:write",
)
PARTICIPANTS = (
    *(f"deployments/reconcile/participants/{name}" for name in ("comparison", "evidence", "lifecycle", "replicas")),
    *(f"deployments/reconcile/participants/{name}" for name in ("rollout", "taps", "traffic")),
    "recordings/reconcile/payloads",
)
OF_A_ROLLOUT = (
    "deployments/services/rollout/rollouts.py:rollout_begin",
    "deployments/reconcile/service_change.py:desired",
    "deployments/reconcile/service_change.py:write_events",
    "deployments/reconcile/hints.py:reconcile_soon",
    "accounts/models.py:save",
    "deployments/domain/rollout/tick.py:advance",
    "deployments/domain/service_state/desired.py:desired_of",
    *(f"{module}.py:{verb}" for module in PARTICIPANTS for verb in ("collect", "record")),
)


def named(heading: str, folder: str) -> set[str]:
    """Return the modules in the first column of the table below a heading, as paths below `folder`."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition(f"### {heading}\n")[2].partition("\n#")[0]
    rows = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == len(set(rows))
    return {row.removeprefix(f"{folder}/") for row in rows}


def test_a_request_goes_through_the_modules_that_the_architecture_names(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "models" / "m" / "1" / "model.onnx")
    out, ports = tmp_path / "modules", tmp_path / "ports.json"
    own = [f"--{each}-{what}" for each in ("http", "grpc", "metrics") for what in ("address=127.0.0.1", "port=0")]
    flags = [f"--model-repository={tmp_path / 'models'}", f"--port-file={ports}", *own]
    tracer = [sys.executable, "-m", "tests.nets._support.call_stacks", str(out), ",".join(OF_A_REQUEST)]
    with subprocess.Popen([*tracer, "serving_runtime", *flags], cwd=ROOT) as process:
        try:
            url = f"http://127.0.0.1:{http_port(ports, process)}/v2/models/m/infer"
            for _ in range(2):  # the first one also fills caches
                ask(url)
        finally:
            process.terminate()
    modules = {
        each for each in out.read_text(encoding="utf-8").splitlines() if not each.startswith(("server/", "__main"))
    }
    assert modules == named("Modules of a request", "serving_runtime")
    assert len(modules) <= MOST_OF_A_REQUEST


@pytest.mark.django_db
def test_a_rollout_goes_through_the_modules_that_the_architecture_names(
    platform: Platform, api: Callable[..., APIClient]
) -> None:
    platform.live()
    platform.version(2)
    client, url = api(Scope.WRITE), "/api/v1/services/default/digits/rollouts"
    client.post(f"{url}?dry_run=true", {"version": "2"})  # notes that the token is in use
    with recorded("platform", OF_A_ROLLOUT) as modules:
        assert client.post(url, {"version": "2"}).status_code == 201
        platform.turn()
    assert modules == named("Modules of a rollout", "platform")
    assert len(modules) <= MOST_OF_A_ROLLOUT


def http_port(ports: Path, process: "subprocess.Popen[bytes]") -> int:
    """Return the port of a server that has come up."""
    for _ in until(_START_S):
        if ports.exists() and (text := ports.read_text(encoding="utf-8")):
            return int(json.loads(text)["http"])
        assert process.poll() is None
    raise TimeoutError("the server did not come up")


def ask(url: str) -> None:
    value = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0, 1, 2, 3]}
    body = json.dumps({"inputs": [value]}).encode()
    for _ in until(_START_S):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as answer:
                assert answer.status == 200
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:  # the model is not being loaded
                raise
    raise TimeoutError("the model was not loaded")


def until(seconds: float) -> Iterator[None]:
    """Yield until so much time has passed, ten times a second."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.1)
