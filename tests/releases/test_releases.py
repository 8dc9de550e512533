"""What earlier releases wrote is still read, and what they take is all that they are told: `record.py` has the files.

A control plane thus works with runtimes of the release before, and an agent or worker with files that the one before
left behind.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from integrations.clusters.base import JobResult, ObservedReplica, ObservedRevision, ReplicaPhase
from integrations.clusters.local.documents import cluster_status_from_json, observed_from_json, order_from_json
from integrations.clusters.local.files import DESIRED_SCHEMA, OBSERVED_SCHEMA, STATUS_SCHEMA, read_json
from integrations.metrics.counters import replica_sample
from registry.domain.inspection import NotAccepted, read_inspection, read_profile
from registry.domain.version_lifecycle import Refused
from tests._support.golden import documents, wholes
from tests.releases import examples, record
from tests.serving_runtime import onnx_models

RELEASES = sorted(folder for folder in record.HERE.glob("[0-9]*") if folder.is_dir())
PRESENT = record.HERE / record.version()
MANIFESTS = Path(__file__).parents[1] / "integrations" / "clusters" / "kubernetes" / "golden"
# Values that are others on every machine and at every run.
_MEASURED = {"load_seconds", "memory_bytes", "iterations", "latency_p50_us", "latency_p99_us"}
every_release = pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)


def test_this_release_is_recorded() -> None:
    assert PRESENT in RELEASES, "run `python -m tests.releases.record`"


@every_release
def test_what_a_runtime_says_of_a_model_is_understood(release: Path) -> None:
    signature, platform = read_inspection(JobResult(0, (release / "inspect.json").read_text()))
    assert platform == "onnxruntime_onnx"
    assert [(tensor.name, tensor.datatype, tuple(tensor.shape)) for tensor in signature.inputs] == [
        ("x", "FP32", (-1, 8))
    ]
    profile = read_profile(JobResult(0, (release / "profile.json").read_text()))
    assert set(profile) >= {"load_seconds", "memory_bytes", "batches"}
    with pytest.raises(NotAccepted) as refused:
        read_inspection(JobResult(2, (release / "refused.json").read_text()))
    assert isinstance(refused.value.outcome, Refused)


@every_release
def test_a_runtimes_counters_are_understood(release: Path) -> None:
    replica = ObservedReplica("digits-00001-0", ReplicaPhase.READY)
    sample = replica_sample(
        ObservedRevision("digits-00001", 100), replica, (release / "metrics.txt").read_text(), "digits"
    )
    assert (sample.requests, sample.client_errors, sample.server_errors) == (1, 0, 0)
    assert sum(sample.latency_counts) == 1
    assert [(batch.size, batch.rows) for batch in sample.batches] == [(1, 1)]


@every_release
def test_files_of_driver_and_agent_are_read(release: Path) -> None:
    assert order_from_json(read_json(release / "desired.json", DESIRED_SCHEMA)) == examples.ORDER
    assert observed_from_json(read_json(release / "observed.json", OBSERVED_SCHEMA)) == examples.OBSERVED
    assert cluster_status_from_json(read_json(release / "status.json", STATUS_SCHEMA)) == examples.STATUS


@every_release
def test_a_runtime_on_kubernetes_is_told_only_what_it_knows(release: Path) -> None:
    """But for what a service must ask for by a field that the older runtime has not."""
    known = record.options() if release == PRESENT else json.loads((release / "options.json").read_text())
    asked = [each for each in calls() if each[0] in known]  # a command that is newer is asked for by new fields
    assert {command for command, _ in asked} >= {"", "prepare"}
    assert [(command, option) for command, option in asked if option not in known[command]] == []


@pytest.mark.parametrize("name", ["desired.json", "observed.json", "status.json"])
def test_a_file_has_all_that_this_releases_first_had(name: str) -> None:
    recorded = json.loads((PRESENT / name).read_text())
    assert lost(recorded, json.loads(json.dumps(record.files()[name]))) == []


def test_the_runtime_still_says_all_that_it_said(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "digits" / "1" / "model.onnx")
    for command in ("inspect", "profile"):
        recorded = json.loads((PRESENT / f"{command}.json").read_text())
        assert lost(recorded, json.loads(record.told(command, tmp_path / "digits"))) == []
    assert set(json.loads((PRESENT / "refused.json").read_text())) == {"schema", "error"}


def test_the_runtime_still_counts_all_that_it_counted(tmp_path: Path) -> None:
    recorded = set(series((PRESENT / "metrics.txt").read_text()))
    assert len(recorded) > 10
    assert recorded - set(series(record.metrics_page(tmp_path))) == set()


def test_the_runtime_still_takes_all_options() -> None:
    recorded, present = json.loads((PRESENT / "options.json").read_text()), record.options()
    gone = {command: set(names) - set(present[command]) for command, names in recorded.items()}
    assert gone == {command: set() for command in recorded}


def test_a_loss_is_found() -> None:
    assert lost({"a": [{"b": 1, "c": 2}], "load_seconds": 1.5}, {"a": [{"b": 1}], "load_seconds": 2.5}) == ["a.0.c"]
    assert lost({"a": 1}, {"a": "1"}) == ["a"]
    assert lost({"a": [1, 2]}, {"a": [1]}) == ["a"]


def lost(recorded: Any, present: Any, path: str = "") -> list[str]:
    """Return where `present` lacks an entry of `recorded` or has another value; more entries are fine."""
    below = f"{path}." if path else ""
    if isinstance(recorded, dict) and isinstance(present, dict):
        return [
            place
            for key, value in recorded.items()
            for place in ([f"{below}{key}"] if key not in present else lost(value, present[key], f"{below}{key}"))
        ]
    if isinstance(recorded, list) and isinstance(present, list) and len(recorded) <= len(present):
        pairs = enumerate(zip(recorded, present, strict=False))
        return [place for index, (one, other) in pairs for place in lost(one, other, f"{below}{index}")]
    is_measured = path.rpartition(".")[2] in _MEASURED and type(present) is type(recorded)
    return [] if is_measured or recorded == present else [path]


def series(page: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names and labels of a metrics page."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            yield sample.name, tuple(sorted(sample.labels))


def calls() -> Iterator[tuple[str, str]]:
    """Yield (command, option) of what pods' containers are called with, out of the rendered manifests."""
    for container in containers([*wholes(MANIFESTS), *documents(MANIFESTS / "replay.out.yaml")]):
        command = container.get("command") or []
        if "serving_runtime" in command:
            words = [*command[command.index("serving_runtime") + 1 :], *container.get("args", [])]
            name = "" if words[0].startswith("--") else words[0]
            yield from ((name, re.split("=", word)[0]) for word in words if word.startswith("--"))


def containers(node: Any) -> Iterator[dict[str, Any]]:
    """Yield everything under `node` that has a `command`."""
    if isinstance(node, dict):
        if "command" in node:
            yield node
        for value in node.values():
            yield from containers(value)
    elif isinstance(node, list):
        for value in node:
            yield from containers(value)
