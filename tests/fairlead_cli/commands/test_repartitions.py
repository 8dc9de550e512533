"""`fairlead clusters repartition` and `fairlead repartitions`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fairlead_cli._support.answers import REPARTITION

Fairlead = Callable[..., tuple[int, str, str]]


WHERE = "/clusters/k/repartitions"


def test_a_plan_is_shown_as_before_and_after_and_nothing_is_done(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", REPARTITION, status=201)
    code, said, told = fairlead("clusters", "repartition", "k", "--for", "2 x 3g.40gb")
    assert code == 0
    assert [seen.document for seen in api.seen] == [{"demands": ["2 x 3g.40gb"]}]
    lines = dict(line.split("  ", 1) for line in said.splitlines())
    assert lines["before"].strip() == "GPU 0, 1: 7 x 1g.10gb"
    assert lines["after"].strip() == "GPU 0, 1: 4 x 1g.10gb + 1 x 3g.40gb"
    assert "default/digits-00001-a" in said
    assert "fairlead repartitions approve k 5" in told


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        pytest.param(("--service", "digits", "--version", "2"), {"service": "digits", "version": "2"}, id="a rollout"),
        pytest.param(("-f", "s.yaml"), {"file": {"kind": "InferenceService"}}, id="a file"),
    ],
)
def test_room_is_asked_for_a_service(
    line: tuple[str, ...], asked: dict[str, Any], fairlead: Fairlead, api: Any, at_home: Path
) -> None:
    (at_home / "s.yaml").write_text("kind: InferenceService")
    api.on(f"POST {WHERE}", REPARTITION, status=201)
    assert fairlead("clusters", "repartition", "k", *line)[0] == 0
    assert api.seen[0].document == asked


def test_with_yes_it_is_approved_and_followed_to_its_end(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", REPARTITION, status=201)
    draining = {**REPARTITION, "phase": "Draining", "message": "waits for 1 GPU pod of services to leave the node"}
    done = {**REPARTITION, "phase": "Done", "message": "the GPUs are cut", "decided_by": "ann", "decided_at": "2026"}
    api.on(f"POST {WHERE}/5/approve", draining)
    api.on(f"GET {WHERE}/5", draining, done)
    code, said, told = fairlead("clusters", "repartition", "k", "--for", "2 x 3g.40gb", "--yes", "--reason", "due")
    assert code == 0
    assert api.seen[1].document == {"reason": "due"}
    assert told.splitlines() == [f"Draining: {draining['message']}", "Done: the GPUs are cut"]
    assert said.count("Proposed") == said.count("Done") == 1


@pytest.mark.parametrize(("phase", "code"), [("Done", 0), ("Aborted", 6), ("Outdated", 3)])
def test_the_exit_code_says_how_it_ended(phase: str, code: int, fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}/5/approve", REPARTITION)
    api.on(f"GET {WHERE}/5", {**REPARTITION, "phase": phase})
    assert fairlead("repartitions", "approve", "k", "5", "--wait")[0] == code


def test_who_aborted_it_and_why_is_shown(fairlead: Fairlead, api: Any) -> None:
    aborted = {"phase": "Aborted", "aborted_by": "bob", "aborted_at": "2026-01-02", "abort_reason": "too busy"}
    api.on(f"POST {WHERE}/5/abort", {**REPARTITION, **aborted})
    code, said, _ = fairlead("repartitions", "abort", "k", "5", "--reason", "too busy")
    assert (code, api.seen[0].document) == (0, {"reason": "too busy"})
    assert "bob, 2026-01-02: too busy" in said


def test_a_version_without_a_service_is_refused(fairlead: Fairlead, api: Any) -> None:
    code, _, told = fairlead("clusters", "repartition", "k", "--for", "1g.10gb", "--version", "2")
    assert (code, api.seen) == (1, [])
    assert "--version goes with --service" in told
