"""What builds are asked and what they answer."""

import json

import pytest

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import JobResult
from model_jobs.builds.domain.order import BuildOrder, Precision, Target, progress_in, read_report

PLAN = BuildOrder(
    Target.TENSORRT,
    Precision.INT8,
    profiles=("x:1x8:4x8:16x8,y:1:4:16", "x:1x8:1x8:1x8"),
    accelerator="nvidia.com/mig-1g.10gb",
    products=("NVIDIA-A100",),
)


def test_an_order_becomes_the_arguments_of_the_runtimes_command() -> None:
    assert BuildOrder().arguments == ("--target=onnx", "--precision=fp16")
    assert PLAN.arguments == (
        "--target=tensorrt",
        "--precision=int8",
        "--optimization-level=3",
        "--profile=x:1x8:4x8:16x8,y:1:4:16",
        "--profile=x:1x8:1x8:1x8",
    )


def test_an_order_is_the_same_after_it_was_stored() -> None:
    assert BuildOrder.from_json(json.loads(json.dumps(PLAN.as_json()))) == PLAN


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (BuildOrder(precision=Precision.FP32), "precision"),
        (BuildOrder(accelerator="nvidia.com/gpu"), "accelerator"),
        (BuildOrder(profiles=("x:1:2:3",)), "profiles"),
        (BuildOrder(Target.TENSORRT, profiles=("x:1:2",)), "profiles"),
        (BuildOrder(Target.TENSORRT, profiles=("x:0:2:3",)), "profiles"),
        (BuildOrder(Target.TENSORRT, profiles=("x:1:2:3 --output=/",)), "profiles"),
    ],
)
def test_what_cannot_be_built_anywhere_is_refused_by_its_field(order: BuildOrder, field: str) -> None:
    PLAN.check()
    with pytest.raises(InvalidInput) as refused:
        order.check()
    assert refused.value.field == field


def test_progress_is_told_from_other_lines() -> None:
    line = json.dumps({"schema": "fairlead.build-progress/v1", "stage": "calibrating: 3 of 64 rows"})
    assert progress_in(line) == {"stage": "calibrating: 3 of 64 rows"}
    assert progress_in("a warning of a library") is None
    assert progress_in("[]") is None


def answer(code: int, **fields: object) -> JobResult:
    return JobResult(code, json.dumps({"schema": "fairlead.build/v1", **fields}), "in a sentence")


def test_an_end_is_read() -> None:
    assert read_report(answer(0, digest="sha256:1", made={"gpu": "H200", "level": 3})) == {
        "digest": "sha256:1",
        "made": {"gpu": "H200", "level": "3"},
    }


@pytest.mark.parametrize(
    ("result", "kind", "sentence"),
    [
        (answer(2, error="model 'model' has no ONNX file"), InvalidInput, "the model has no ONNX file"),
        (JobResult(124, "", "it did not finish in 60 s"), InvalidInput, "it did not finish in 60 s"),
        (JobResult(-9, "", "it was ended by SIGKILL"), Unavailable, "it was ended by SIGKILL"),
        (JobResult(0, "{}"), Unavailable, "no answer known here"),
    ],
)
def test_an_end_without_a_model_is_told(result: JobResult, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        read_report(result)
