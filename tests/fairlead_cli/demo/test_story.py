"""What the demo does about what it finds in the folder."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.demo import story
from fairlead_cli.demo.story import Story
from fairlead_cli.errors import CliError, EndedBadly

SERVICE = "/services/default/digits"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def told(api: Any, tmp_path: Path, said: list[str]) -> Iterator[Story]:
    with Client(Access(api.url, "")) as client:
        yield Story(client, tmp_path, said.append, lambda: nullcontext(lambda _rollout: None))


def test_a_new_folder_has_nothing_to_clear(told: Story, api: Any, said: list[str]) -> None:
    told.clear()

    assert said == []
    assert [seen.method for seen in api.seen] == ["GET"]


def test_the_service_of_an_earlier_demo_is_waited_out(told: Story, api: Any) -> None:
    own = {"policy": story.POLICY, "phase": "Ready"}
    gone = {"error": {"code": "not_found", "message": "no such service", "field": None, "request_id": ""}}
    api.answers[f"GET {SERVICE}"] = [(200, own), (200, own), (404, gone)]
    api.on(f"DELETE {SERVICE}", {}, status=204)

    told.clear()

    assert [seen.method for seen in api.seen] == ["GET", "DELETE", "GET", "GET"]


@pytest.mark.parametrize("policy", ["careful", None], ids=["with a policy", "without one"])
def test_a_service_that_somebody_else_made_is_left_alone(told: Story, api: Any, policy: str | None) -> None:
    api.on(f"GET {SERVICE}", {"policy": policy, "phase": "Ready"})

    with pytest.raises(CliError, match=r"a service default/digits that the demo did not make; delete it .* --home"):
        told.clear()
    assert [seen.method for seen in api.seen] == ["GET"]


def test_a_version_that_is_rejected_ends_the_demo(told: Story, api: Any, tmp_path: Path) -> None:
    (tmp_path / "v1.onnx").write_bytes(b"x")
    api.on("POST /models/digits/versions?filename=v1.onnx", {"number": 1}, status=201)
    api.on("GET /models/digits/versions/1", {"number": 1, "status": "REJECTED", "reason": "no ONNX file"})

    with pytest.raises(EndedBadly, match="digits version 1 was rejected: no ONNX file"):
        told.push("v1")


def test_a_service_that_cannot_serve_ends_the_demo(told: Story, api: Any) -> None:
    api.on(f"PUT /policies/{story.POLICY}", {})
    api.on(f"PUT {SERVICE}", {}, status=201)
    api.on(f"GET {SERVICE}", {"phase": "Pending"}, {"phase": "Degraded", "reason": "the replica crashes"})

    with pytest.raises(CliError, match="service default/digits is Degraded: the replica crashes"):
        told.serve(1, hold_seconds=3)
    assert not any("quality" in step.get("analysis", {}) for step in api.seen[0].document["steps"])


def test_answers_are_kept_and_scored_before_the_policy_gates_on_the_score(told: Story, api: Any) -> None:
    api.on(f"PUT /policies/{story.POLICY}", {})
    api.on(f"PUT {SERVICE}/feedback/answers", {})
    api.on(f"PUT {SERVICE}/feedback/scorers/accuracy", {})

    told.gate_on_labels(hold_seconds=6)

    answers, scorer, policy = (seen.document for seen in api.seen)
    assert answers == {"share_percent": 100, "days": 1, "output": "probabilities"}
    assert scorer == {"kind": "accuracy"}
    assert [step.get("analysis", {}).get("quality") for step in policy["steps"]] == [story.QUALITY] + [None] * 4
    assert story.QUALITY["scorer"] == "accuracy"


def test_the_end_waits_until_labels_are_joined(told: Story, api: Any) -> None:
    api.on(f"GET {SERVICE}/feedback", {"joined": 3}, {"joined": 4})

    assert told.joined(4) == {"joined": 4}
    assert len(api.seen) == 2
