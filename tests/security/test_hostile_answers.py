"""Answers and requests that clients and models made to harm the reconciler or its database, where answers are kept."""

import json
import math
import time
from dataclasses import replace
from typing import Any

import pytest

from deployments.reconcile.reconciler import Outcome
from feedback.models import Answer
from feedback.selectors.answers import answer_values
from tests.deployments._support.fixtures import platform
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import Keeping

__all__ = ["platform"]

NAN = float("nan")
MOST_ROW_BYTES = 128 << 10
"""Of a row with all its columns: 64 KiB of values, encrypted, and what is bounded by number and length."""


def deep(levels: int) -> Any:
    found: Any = "x"
    for _ in range(levels):
        found = {"p": [found]}
    return found


def output(**changed: Any) -> dict[str, Any]:
    return {"name": "label", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 0.25], **changed}


OUTPUTS: dict[str, Any] = {
    "nothing": [],
    "no objects": [1, None, "x", []],
    "no names": [{"datatype": "FP32"}, {"name": 7}, {"name": None}],
    "a shape larger than the data": [output(shape=[1 << 20, 1 << 20])],
    "a shape beyond all numbers": [output(shape=[10**300] * 32)],
    "a shape of many dimensions": [output(shape=[1] * 100_000)],
    "a negative shape": [output(shape=[-1, -2])],
    "a shape of texts": [output(shape=["2"])],
    "no shape": [output(shape=None)],
    "an unknown type": [output(datatype="FP128")],
    "a type that is a list": [output(datatype=["FP32"])],
    "NaN": [output(data=[NAN, math.inf])],
    "texts in numbers": [output(data=["a", "b"])],
    "a number too large": [output(datatype="INT8", data=[10**40, 1])],
    "data nested deeply": [output(data=deep(50)["p"])],
    "no data": [output(data=None)],
    "base64 that is none": [output(parameters={"encoding": "base64"}, data=["???"])],
    "base64 of another length": [output(parameters={"encoding": "base64"}, data=["AAAA"])],
    "a binary size": [output(parameters={"binary_data_size": 10**9})],
    "parameters that are a list": [output(parameters=[1])],
    "zero bytes": [output(datatype="BYTES", shape=[2], data=["a\0b", "\ud800"])],
    "a long text": [output(datatype="BYTES", shape=[1], data=["x" * 4_000_000])],
    "a name with zero bytes": [output(), output(name="\0\ud800" * 10)],
    "a long name": [output(), output(name="n" * 1_000_000)],
    "many tensors": [output(name=f"o{number}") for number in range(20_000)],
    "many tensors of one name": [output()] * 20_000,
    "a huge output": [output(shape=[1, 1_000_000], data=[0.5] * 1_000_000)],
    "many rows": [output(shape=[100_000, 2], data=[0.5] * 200_000)],
    "many texts": [output(datatype="BYTES", shape=[100_000], data=["x"] * 100_000)],
}
PARAMETERS: dict[str, Any] = {
    "deep": {"site": deep(500)},
    "a list": [1, 2],
    "zero bytes": {"site": "a\0b\ud800"},
    "a long text": {"site": "x" * 4_000_000},
    "a huge number": {"site": 10**4000, "age": 1e308},
    "NaN": {"site": NAN, "age": math.inf},
    "many": {f"p{number}": "x" for number in range(20_000)},
}


@pytest.fixture
def keeping(platform: Platform) -> Keeping:
    order = {"output": "label", "outputs": ["label"], "keeps_inputs": True, "parameters": ["site", "age"]}
    return Keeping(platform, **order)


def survives(keeping: Keeping, **exchange: Any) -> None:
    """Let the reconciler read a hostile exchange before a good one; what it keeps is bounded."""
    keeping.record(keeping.exchange("hostile", **exchange), keeping.exchange("good", parameters={"site": "north"}))
    began = time.perf_counter()
    assert keeping.platform.turn() is Outcome.DONE
    assert time.perf_counter() - began < 5
    assert Answer.objects.get(request_id="good").parameters == {"site": "north"}
    for row in Answer.objects.all():
        texts = json.dumps([row.top, row.parameters], allow_nan=False)
        assert len(texts) + len(row.sealed) < MOST_ROW_BYTES
        assert len(row.top) <= 64
        assert set(answer_values(row)) <= {"outputs", "inputs", "left_out"}
    assert keeping.row().rows == Answer.objects.count()


@pytest.mark.parametrize("what", OUTPUTS)
def test_hostile_outputs_and_inputs_end_no_turn(keeping: Keeping, what: str) -> None:
    survives(keeping, outputs=OUTPUTS[what], inputs=OUTPUTS[what])


@pytest.mark.parametrize("what", PARAMETERS)
def test_hostile_parameters_end_no_turn(keeping: Keeping, what: str) -> None:
    survives(keeping, parameters=PARAMETERS[what])
    kept = Answer.objects.get(request_id="hostile").parameters
    assert all(isinstance(text, str) and len(text) <= 64 for text in kept.values())


@pytest.mark.parametrize("body", [{}, {"outputs": None}, {"outputs": {"a": 1}}, {"inputs": 3, "outputs": "x"}])
def test_bodies_without_tensors_end_no_turn(keeping: Keeping, body: dict[str, Any]) -> None:
    keeping.record(replace(keeping.exchange("a"), request=body, response=body))
    assert keeping.platform.turn() is Outcome.DONE
    assert Answer.objects.get().top == []


@pytest.mark.parametrize("request_id", ["", "a\0b", "\ud800", "x" * 129, "x" * 5_000_000, None, 7, ["a"]])
def test_ids_that_no_label_can_name_are_left_out(keeping: Keeping, request_id: Any) -> None:
    keeping.record(keeping.exchange(request_id))
    keeping.answer("good")
    assert keeping.ids() == ["good"]


@pytest.mark.parametrize("at", [NAN, -1e300, -math.inf, 1e300, math.inf])
def test_times_that_no_clock_has_end_no_turn(keeping: Keeping, at: float) -> None:
    keeping.record(replace(keeping.exchange("a"), at=at))
    keeping.answer("good")
    assert "good" in keeping.ids()
    assert all(row.at <= keeping.platform.clock() for row in Answer.objects.all())


def test_a_flood_stays_within_the_limits(platform: Platform) -> None:
    keeping = Keeping(platform, max_rows=1000, max_bytes=200_000, keeps_inputs=True)
    keeping.record(*(keeping.exchange(f"r{number}") for number in range(5_000)))
    platform.turn()
    row = keeping.row()
    assert 0 < row.rows == Answer.objects.count() <= 1000
    assert row.bytes <= 200_000
    assert row.rows + row.left_out == 5_000
