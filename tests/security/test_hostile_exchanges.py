"""Exchanges that lie: drift neither raises for them nor stores more than its bounds."""

import base64
import json
from typing import Any

import pytest

from feedback.domain.drift.features import MOST_FEATURES
from feedback.models import DriftBlock, DriftFeature, DriftHour, Kept
from integrations.clusters.base import Exchange
from tests.deployments._support.fixtures import platform
from tests.deployments._support.platform import Platform
from tests.feedback._support.watched import STABLE, Watched, tensor

__all__ = ["platform"]
WIDE = {"name": "wide", "datatype": "FP32", "shape": [1, 10**6], "data": [0.5] * 10**6}
HOSTILE: dict[str, dict[str, Any]] = {
    "a shape that lies": {"name": "x", "datatype": "FP32", "shape": [10**6, 10**6], "data": [1.0]},
    "a negative shape": {"name": "x", "datatype": "FP32", "shape": [-1, 3], "data": [1.0]},
    "no finite numbers": {
        "name": "x",
        "datatype": "FP32",
        "shape": [2, 1],
        "data": [base64.b64encode(b"\x00\x00\xc0\x7f\x00\x00\x80\x7f").decode()],
        "parameters": {"encoding": "base64"},
    },
    "the largest numbers": {"name": "x", "datatype": "FP64", "shape": [2, 40], "data": [1.7e308] * 80},
    "a million columns": WIDE,
    "a name of control characters": {"name": "\x00\x1b[31m\ud800" * 50, "datatype": "INT64", "shape": [1], "data": [1]},
    "a text that is none": {"name": "x", "datatype": "BYTES", "shape": [1], "data": ["\ud800\x00"]},
    "no tensor": {"name": 3, "shape": "x"},
    "no scalars": {"name": "x", "datatype": "FP32", "shape": [], "data": [1.0]},
    "no rows": {"name": "x", "datatype": "FP32", "shape": [0, 5], "data": []},
}


@pytest.fixture
def watched(platform: Platform) -> Watched:
    return Watched(platform)


def exchange(watched: Watched, number: int, inputs: list[Any], outputs: list[Any]) -> Exchange:
    at = watched.platform.clock().timestamp()
    return Exchange(f"hostile-{number}", STABLE, "1", at, {"inputs": inputs}, {"outputs": outputs})


def stored_bytes() -> int:
    rows = [*DriftFeature.objects.values(), *DriftBlock.objects.values(), *DriftHour.objects.values()]
    return len(json.dumps(rows, default=str))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tensor_stops_no_turn(watched: Watched, name: str) -> None:
    item = HOSTILE[name]
    for _ in range(3):
        watched.bring(*(exchange(watched, number, [item], [item]) for number in range(3)))
        watched.feed()
    assert watched.row().state is None or watched.state()["learned"]
    assert DriftFeature.objects.count() <= MOST_FEATURES
    assert all(each.name.isprintable() for each in DriftFeature.objects.all())
    assert stored_bytes() < 200_000


def test_bodies_that_are_none_stop_no_turn(watched: Watched) -> None:
    bodies: list[dict[str, Any]] = [{}, {"inputs": None, "outputs": 3}, {"inputs": {}, "outputs": [[]]}]
    for number, body in enumerate(bodies):
        watched.bring(Exchange(f"none-{number}", STABLE, "1", 0.0, body, body))
    watched.feed()
    assert watched.block().rows == 120


def test_names_that_change_and_classes_without_end_stay_within_bounds(watched: Watched) -> None:
    """A model that answers other tensors and classes each time."""
    Kept.objects.update(keeps_inputs=True)
    for turn in range(8):
        made = []
        for number in range(100):
            at = 100 * turn + number
            name = {"name": "user", "datatype": "BYTES", "shape": [1], "data": [f"person-{at}"]}
            label = {"name": "label", "datatype": "INT64", "shape": [1], "data": [at]}
            made.append(exchange(watched, at, [tensor(f"input-{at}", [[1.0, 2.0]]), name], [label]))
        watched.bring(*made)
        watched.platform.turn(seconds=61)
    assert DriftFeature.objects.count() == MOST_FEATURES
    assert DriftFeature.objects.get(name="class of label").bins == {}
    assert DriftFeature.objects.get(name="text of user").bins == {}
    assert "person-" not in json.dumps([*DriftBlock.objects.values(), *DriftFeature.objects.values()], default=str)
    assert stored_bytes() < 500_000


def test_a_flood_is_sampled(watched: Watched) -> None:
    watched.bring(*(watched.exchange((1.0,), revision=STABLE, moved=0, rows=1) for _ in range(2000)))
    watched.platform.turn()
    assert 200 <= watched.block().rows <= 256
