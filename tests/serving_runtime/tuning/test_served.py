"""What may be tried with a model, and which fields of its configuration a setting changes."""

from pathlib import Path
from typing import Any

import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.tuning.served import Bounds, baseline_of, check_tunable, fields_of, space_of
from serving_runtime.tuning.space import Setting

COMPLETED: dict[str, Any] = {
    "name": "m",
    "backend": "onnxruntime",
    "max_batch_size": 4,
    "dynamic_batching": {"max_queue_delay_microseconds": 0},
    "instance_group": [{"count": 1, "kind": "KIND_CPU"}],
}


def written(tmp_path: Path, content: str = "") -> Any:
    (tmp_path / "config.pbtxt").write_text(content)
    return text.read(tmp_path / "config.pbtxt", "m")


def test_a_model_without_a_config_may_be_tried_with_everything(tmp_path: Path) -> None:
    space = space_of(COMPLETED, written(tmp_path), Bounds(limit_ms=10, cores=4, max_batch_size=32))
    assert space.baseline == Setting(1, 4, 0, 1)
    assert space.instances == (1, 2, 4)
    assert space.batch_sizes == (1, 4, 8, 16, 32)
    assert space.queue_delays_us == (0, 100, 200, 500, 1000, 2000, 5000)
    assert space.intra_op_threads == (1, 2, 4)


def test_requests_that_are_taken_today_stay_allowed_unless_clients_are_known_to_send_less(tmp_path: Path) -> None:
    config = {**COMPLETED, "max_batch_size": 16}
    own = written(tmp_path, "max_batch_size: 16\ndynamic_batching {}")
    assert space_of(config, own, Bounds(10, 1, max_batch_size=32)).batch_sizes == (16, 32)
    smaller = space_of(config, own, Bounds(10, 1, max_batch_size=32, largest_request_rows=1))
    assert smaller.batch_sizes == (2, 4, 8, 16, 32)


@pytest.mark.parametrize(
    ("changes", "own", "dimension", "levels"),
    [
        ({"max_batch_size": 0, "dynamic_batching": None}, "", "batch_sizes", (1,)),
        ({"backend": "openvino"}, "", "intra_op_threads", (1,)),
        ({"instance_group": [{"count": 1, "kind": "KIND_GPU"}]}, "", "intra_op_threads", (1,)),
        ({"instance_group": [{"count": 1, "kind": "KIND_GPU"}]}, "", "instances", (1, 2, 4)),
        (
            {"instance_group": [{"count": 2}, {"count": 1}]},
            "instance_group { count: 2 }\ninstance_group { count: 1 }",
            "instances",
            (3,),
        ),
    ],
    ids=[
        "no batch dimension",
        "no threads of ONNX Runtime",
        "threads on a GPU",
        "few instances on a GPU",
        "two groups",
    ],
)
def test_a_dimension_that_the_model_has_not_stays_as_it_is(
    tmp_path: Path, changes: dict[str, Any], own: str, dimension: str, levels: tuple[int, ...]
) -> None:
    space = space_of({**COMPLETED, **changes}, written(tmp_path, own), Bounds(limit_ms=10, cores=8))
    assert getattr(space, dimension) == levels


def test_fields_keep_what_the_model_says_besides(tmp_path: Path) -> None:
    own = written(
        tmp_path,
        """max_batch_size: 4
        dynamic_batching { preferred_batch_size: 4  preserve_ordering: true }
        instance_group { count: 1  kind: KIND_CPU }
        parameters { key: "execution_mode" value { string_value: "1" } }""",
    )
    fields = fields_of(Setting(2, 16, 500, 2), Setting(1, 4, 0, 1), COMPLETED, own)
    assert fields == {
        "instance_group": [{"kind": "KIND_CPU", "count": 2}],
        "max_batch_size": 16,
        "dynamic_batching": {"preserve_ordering": True, "max_queue_delay_microseconds": 500},
        "parameters": {
            "execution_mode": {"string_value": "1"},
            "intra_op_thread_count": {"string_value": "2"},
        },
    }


def test_fields_say_only_what_changes(tmp_path: Path) -> None:
    own, baseline = written(tmp_path), baseline_of(COMPLETED)
    assert fields_of(baseline, baseline, COMPLETED, own) == {}
    assert fields_of(Setting(2, 4, 0, 1), baseline, COMPLETED, own) == {"instance_group": [{"count": 2}]}
    assert fields_of(Setting(1, 1, 0, 1), baseline, COMPLETED, own) == {"max_batch_size": 4}


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("ensemble_scheduling", {}, "tune the models of its steps"),
        ("sequence_batching", {}, "a model of sequences"),
        ("model_transaction_policy", {"decoupled": True}, "decoupled"),
    ],
)
def test_models_whose_requests_differ_are_refused(field: str, value: object, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        check_tunable({**COMPLETED, field: value})
