"""Programs of folders on a whole platform: a canary between two releases, and companions of a model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e._support.platforms import started
from tests.e2e._support.services import apply, ask, asking
from tests.e2e.harness import Platform, until
from tests.integrations._support.programs import ARGS, COMMAND, EXPLAIN, PLUS, TIMES, program
from tests.integrations._support.runtimes import model

pytestmark = pytest.mark.e2e

POLICY = """
name: careful
strategy: canary
steps:
  - weight: 50
    analysis: {minRequests: 20, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""
WAIT_S = 120


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    (tmp_path / "programs").mkdir()
    with started(tmp_path, FAIRLEAD_PROGRAM_FOLDERS=str(tmp_path / "programs")) as running:
        yield running


def container(folder: Path) -> dict[str, Any]:
    return {"workingDir": str(folder), "command": list(COMMAND), "args": list(ARGS)}


def test_a_canary_between_two_releases_and_companions_of_a_model(platform: Platform) -> None:
    folder = platform.home.parent / "programs"
    (platform.home.parent / "policy.yaml").write_text(POLICY)
    platform.fairlead("policies", "apply", "-f", "policy.yaml")
    for number in (2, 3):
        program(folder / f"times-{number}", TIMES, number)
    rollout = {"policy": "careful"}
    apply(platform, "times", "--wait", predictor={"containers": [container(folder / "times-2")]}, rollout=rollout)
    with platform.client() as client, asking(platform, "times") as seen:
        until(lambda: len(seen) > 20, WAIT_S, "the first release answers")
        apply(platform, "times", predictor={"containers": [container(folder / "times-3")]}, rollout=rollout)

        def phase() -> str:
            return str(client.get("services/default/times/rollouts")["results"][0]["phase"])

        until(lambda: phase() in ("Healthy", "Degraded", "Aborted"), WAIT_S, "the rollout ends")
        assert phase() == "Healthy"
        sent = len(seen)
        until(lambda: len(seen) > sent + 20, WAIT_S, "the second release answers")
        images = [each["image"].partition("@")[0] for each in client.get("services/default/times")["revisions"]]
        assert images[-1] == "times-3"
    assert {status for status, _, _ in seen} == {200}, [each for each in seen if each[0] != 200][:3]
    answers = {revision: numbers for _, revision, numbers in seen}
    assert answers == {"times-00001": [2, 4, 6, 8], "times-00002": [3, 6, 9, 12]}

    (platform.home.parent / "model.onnx").write_bytes(model(3))
    platform.fairlead("models", "push", "model.onnx", "--name", "linear", "--wait")
    companions = {
        "transformer": {"containers": [container(program(folder / "plus-1", PLUS, 1))]},
        "explainer": {"containers": [container(program(folder / "explains", EXPLAIN))]},
    }
    predictor = {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/linear/1"}}
    apply(platform, "linear", "--wait", predictor=predictor, **companions)
    assert ask(platform, "linear")["outputs"][0]["data"] == [6, 9, 12, 15]
    explained = ask(platform, "linear", "/v1/models/linear:explain")
    assert explained == {"explained": "/v1/models/linear:explain", "by": [6, 9, 12, 15], "token": ""}

    (folder / "plus-1" / "parameter.json").write_text("7")
    platform.fairlead("services", "restart", "linear")

    refusal = "plus-1 has other content than when revision linear-00001 was applied"
    show = ("services", "show", "linear", "-o", "json")
    until(lambda: refusal in platform.fairlead(*show).stdout, WAIT_S, "the new replica's start is refused")
    assert ask(platform, "linear")["outputs"][0]["data"] == [6, 9, 12, 15], "what runs goes on"
