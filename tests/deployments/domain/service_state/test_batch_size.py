"""Which batch size a service has of a model whose configuration says none."""

import pytest

from deployments.domain.service_state.batch_size import with_batch_size

SIGNATURE: dict[str, object] = {"inputs": [{"name": "x", "shape": [-1, 4]}], "max_batch_size": 4}
FOUND = {"max_batch_size": 32, "batches": []}


@pytest.mark.parametrize(
    ("config", "profile", "expected"),
    [
        pytest.param({}, FOUND, {"max_batch_size": 32, "dynamic_batching": {}}, id="nothing is said"),
        pytest.param(
            {"instance_group": [{"count": 2}]},
            FOUND,
            {"instance_group": [{"count": 2}], "max_batch_size": 32, "dynamic_batching": {}},
            id="other fields stay",
        ),
        pytest.param(
            {"dynamic_batching": {"max_queue_delay_microseconds": 5}},
            FOUND,
            {"dynamic_batching": {"max_queue_delay_microseconds": 5}, "max_batch_size": 32},
            id="a batcher of its own",
        ),
        pytest.param({"max_batch_size": 4}, FOUND, {"max_batch_size": 4}, id="a size of its own"),
        pytest.param({"max_batch_size": 0}, FOUND, {"max_batch_size": 0}, id="none on purpose"),
        pytest.param({"sequence_batching": {}}, FOUND, {"sequence_batching": {}}, id="sequences"),
        pytest.param({"input": [{"name": "x"}]}, FOUND, {"input": [{"name": "x"}]}, id="dims that may name the batch"),
        pytest.param({}, {"batches": []}, {}, id="the model's own configuration says one, or it was never measured"),
        pytest.param({}, {"max_batch_size": "32"}, {}, id="no number"),
    ],
)
def test_a_service_has_the_size_that_was_found_good_unless_its_file_says_otherwise(
    config: dict[str, object], profile: dict[str, object], expected: dict[str, object]
) -> None:
    assert with_batch_size(config, profile, SIGNATURE, "model.onnx") == expected


@pytest.mark.parametrize(
    ("shapes", "rows", "expected"),
    [
        pytest.param([[-1, 1], [-1, 1]], {"max_batch_size": 8}, 8, id="a size was stored"),
        pytest.param([[-1, 1]], {}, 4, id="none was stored then"),
        pytest.param([[-1, 1]], {"max_batch_size": 0}, None, id="no batches"),
        pytest.param([[-1, 1], [-1, 3]], {}, None, id="not one value alone"),
        pytest.param([[-1]], {}, None, id="checked by this release"),
        pytest.param([], {}, None, id="no inputs"),
    ],
)
def test_a_version_that_an_earlier_release_checked_takes_what_it_took(
    shapes: list[list[int]], rows: dict[str, int], expected: int | None
) -> None:
    signature = {"inputs": [{"name": str(at), "shape": shape} for at, shape in enumerate(shapes)], **rows}
    config = with_batch_size({}, {}, signature, "model.onnx")
    assert config == ({} if expected is None else {"max_batch_size": expected, "dynamic_batching": {}})
    config = with_batch_size({}, {}, signature, "ensemble.tar.gz")
    assert config == ({} if expected is None else {"max_batch_size": expected}), "its configuration may say how"
