"""The forms of builds and tunings: what they offer, and the orders that they say."""

import pytest

from common.errors import InvalidInput
from model_jobs.builds.domain.order import BuildOrder, Precision, Target
from model_jobs.web.forms import build_order, has_calibration, profile_of, shapes_of, tuning_order, why_unbuilt
from registry.domain.signature import parse

TEXTS = parse(
    {
        "inputs": [
            {"name": "tokens", "datatype": "INT64", "shape": [-1, -1]},
            {"name": "row", "datatype": "FP32", "shape": [-1, 4]},
        ],
        "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
    }
)
PLAN = {"kind": "plan", "precision": "fp16", "accelerator": "nvidia.com/mig-1g.10gb"}


def test_builds_begin_with_onnx_alone() -> None:
    assert why_unbuilt("onnxruntime_onnx") == ""
    assert "this one is tensorrt_plan" in why_unbuilt("tensorrt_plan")
    assert "not known yet" in why_unbuilt("")


def test_a_single_file_has_no_rows_for_int8() -> None:
    assert not has_calibration("digits.ONNX")
    assert has_calibration("digits.tar")


def test_a_plan_takes_the_shapes_that_vary() -> None:
    assert profile_of(TEXTS) == "tokens:1x1:8x128:32x512,row:1x4:8x4:32x4"
    fixed = parse({"inputs": [{"name": "x", "datatype": "FP32", "shape": [4]}], "outputs": []})
    assert profile_of(fixed) == ""


def test_onnx_leaves_what_is_said_of_plans_out() -> None:
    order = build_order({"kind": "int8", "timeout": "20m", "accelerator": "nvidia.com/gpu", "profiles": "x:1:1:1"})
    assert order == BuildOrder(precision=Precision.INT8, timeout_s=1200)


def test_a_plan_is_built_as_said() -> None:
    order = build_order(
        {**PLAN, "profiles": "x:1x4:8x4:32x4\n\n", "products": "A100, H100-80GB", "optimization_level": "5"}
    )
    assert (order.target, order.accelerator, order.optimization_level) == (Target.TENSORRT, PLAN["accelerator"], 5)
    assert (order.profiles, order.products) == (("x:1x4:8x4:32x4",), ("A100", "H100-80GB"))


@pytest.mark.parametrize(
    ("said", "field"),
    [
        pytest.param({"kind": "fp8"}, "kind", id="no kind of build"),
        pytest.param({**PLAN, "precision": "fp8"}, "precision", id="no precision"),
        pytest.param({**PLAN, "accelerator": "gpu"}, "accelerator", id="no resource"),
        pytest.param({**PLAN, "products": "-A"}, "products", id="no label"),
        pytest.param({**PLAN, "profiles": "x:1:2"}, "profiles", id="a profile without its largest"),
        pytest.param({**PLAN, "profiles": "x:1:1:1\n" * 9}, "profiles", id="too many profiles"),
        pytest.param({**PLAN, "optimization_level": "6"}, "optimization_level", id="a level too high"),
        pytest.param({"kind": "fp16", "timeout": "5s"}, "timeout", id="too short"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(said: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build_order(said)
    assert refused.value.field == field


def test_a_tuning_asks_for_shapes_that_vary_beside_the_batch() -> None:
    shapes = shapes_of(TEXTS)
    assert [(shape.input, shape.example) for shape in shapes] == [("tokens", "1")]
    said = {"max_latency_p99_ms": "2,5", "budget": "90s", "rows": "2", "max_instances": "", shapes[0].name: "128"}
    order = tuning_order(said, shapes)
    assert (order.max_latency_p99_ms, order.budget_s, order.rows, order.max_instances) == (2.5, 90, 2, None)
    assert order.shapes == {"tokens": (128,)}
    assert order.max_batch_size == 128


@pytest.mark.parametrize(
    ("said", "field"),
    [
        pytest.param({}, "max_latency_p99_ms", id="no limit"),
        pytest.param({"max_latency_p99_ms": "nan"}, "max_latency_p99_ms", id="no number"),
        pytest.param({"max_latency_p99_ms": "5", "budget": "3h"}, "budget", id="too long"),
        pytest.param({"max_latency_p99_ms": "5", "rows": "0"}, "rows", id="no rows"),
        pytest.param({"max_latency_p99_ms": "5", "shape tokens": "a"}, "shapes", id="no sizes"),
    ],
)
def test_what_is_wrong_with_a_tuning_is_told_by_its_field(said: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tuning_order(said, shapes_of(TEXTS))
    assert refused.value.field == field
