"""Programs on this machine: agent, sandbox, proxy and programs are real."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import DesiredRevision, Failure, FailureReason, SecretKeyRef
from integrations.clusters.local.files import write_text
from tests.integrations._support.programs import EXPLAIN, PLUS, TIMES, companion, custom, program
from tests.integrations._support.runtimes import Cluster, Traffic

BASE = "/serving/default/digits"
X = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
Eventually = Callable[..., Any]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that holds the programs' folders."""
    return tmp_path_factory.mktemp("programs")


def start(cluster: Cluster, runtime: str, folder: Path) -> None:
    cluster.start(runtime=runtime, flags=[f"--program-folders={folder}"], start_s=60)


def revision(number: int, weight: int, folder: Path, **more: Any) -> DesiredRevision:
    its = custom(folder)
    name, digest = f"digits-{number:05}", its.image.partition("@")[2]
    return DesiredRevision(name, "digits", str(number), "", digest, 1, weight, custom=its, **more)


def answer(cluster: Cluster, path: str = "/v2/models/digits/infer") -> Any:
    status, _, body = cluster.request(
        BASE + path, "POST", json.dumps({"inputs": [X]}).encode(), content_type="application/json"
    )
    assert status == 200, body
    return json.loads(body)


def data(cluster: Cluster) -> list[float]:
    found: list[float] = answer(cluster)["outputs"][0]["data"]
    return found


def test_a_program_serves_in_place_of_a_model_until_its_folder_changes(
    cluster: Cluster, runtime: str, folder: Path, eventually: Eventually
) -> None:
    start(cluster, runtime, folder)
    first = program(folder / "times-2", TIMES, 2)
    applied = revision(1, 100, first)
    cluster.apply(1, applied)
    cluster.until_weights(r1=100)
    assert data(cluster) == [2, 4, 6, 8]
    metrics = eventually(lambda: cluster.driver.metrics_page("default", cluster.observe().revisions[0].replicas[0]), "")
    assert "nv_inference_request_success" in metrics

    write_text(first / "parameter.json", "3")
    assert data(cluster) == [2, 4, 6, 8], "what runs goes on"
    cluster.apply(2, replace(applied, restart_number=1))
    failure = eventually(lambda: _failure(cluster, "digits-00001"), "the next start is refused")
    assert (failure.reason, failure.is_final) == (FailureReason.MODEL_LOAD_FAILED, True)
    assert "times-2 has other content than when revision digits-00001 was applied; put each release" in failure.message
    assert data(cluster) == [2, 4, 6, 8], "the replica of before serves while no new one starts"


def test_a_model_has_a_transformer_and_an_explainer_in_each_replica(
    cluster: Cluster, runtime: str, folder: Path
) -> None:
    start(cluster, runtime, folder)
    before, explains = program(folder / "plus-1", PLUS, 1), program(folder / "explains", EXPLAIN)
    explainer = replace(companion(explains), secret_env={"TOKEN": SecretKeyRef("hub", "token")})
    more: dict[str, Any] = {"transformer": companion(before), "explainer": explainer}
    cluster.driver.apply_secrets("default", "digits", lambda: {"hub": {"token": "of the explainer"}})
    cluster.apply(1, cluster.revision(3, 100, replicas=2, **more))
    cluster.until_weights(r3=100)
    cluster.until_ready(2)
    assert data(cluster) == [6, 9, 12, 15]
    for path in ("/v1/models/digits:explain", "/v2/models/digits/explain"):
        by = {"by": [6, 9, 12, 15], "token": "of the explainer"}
        assert answer(cluster, path) == {"explained": path, **by}


TRANSFORMER = """
from fairlead_python import FP32

class Transformer:
    max_batch_size = 8

    def preprocess(self, x: FP32[4]):
        return {"x": x + 1}

    def postprocess(self, outputs) -> FP32[4]:
        return outputs["y"]
"""


def test_a_class_in_python_is_a_transformer_by_the_platforms_own_command(
    cluster: Cluster, runtime: str, folder: Path, traffic: type[Traffic]
) -> None:
    start(cluster, runtime, folder)
    (folder / "plus-1").mkdir()
    (folder / "plus-1" / "model.py").write_text(TRANSFORMER)
    command = (str(Path(sys.executable).with_name("fairlead-serve")), "transformer", ".")
    ports = ("--http_port=$(PORT)", "--grpc_port=$(GRPC_PORT)")
    transformer = replace(companion(folder / "plus-1"), command=command, args=ports)
    cluster.apply(1, cluster.revision(3, 100, transformer=transformer))
    cluster.until_weights(r3=100)
    assert data(cluster) == [6, 9, 12, 15]
    with traffic(cluster.url) as sent:  # over HTTP and gRPC
        sent.until_sent(40)
    assert sent.failures == []


def test_what_may_not_run_here_says_why(
    cluster: Cluster, runtime: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, eventually: Eventually
) -> None:
    start(cluster, runtime, folder)
    cluster.apply(1, revision(1, 100, program(tmp_path_factory.mktemp("elsewhere") / "times-2", TIMES, 2)))
    failure = eventually(lambda: _failure(cluster, "digits-00001"), "it is refused")
    assert failure.is_final
    assert "this installation runs the programs of folders directly in" in failure.message
    ends = program(folder / "ends", "raise SystemExit('no weights')")
    cluster.apply(2, revision(2, 100, ends))
    failure = eventually(lambda: _failure(cluster, "digits-00002"), "the program ends")
    assert "no weights" in "".join(failure.log)


def _failure(cluster: Cluster, name: str) -> Failure | None:
    found = cluster.observe().revision(name)
    return None if found is None else found.last_failure
