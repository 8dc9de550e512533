"""A config that asks for what is not offered refuses the load by the field's dotted name."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.support import refuse_unsupported


@pytest.mark.parametrize(
    ("config", "named"),
    [
        pytest.param(
            "sequence_batching { iterative_sequence: true }",
            "'sequence_batching.iterative_sequence'",
            id="iterative sequences",
        ),
        pytest.param(
            'ensemble_scheduling { step { model_namespace: "a" } }',
            "'ensemble_scheduling.step.model_namespace'",
            id="name spaces",
        ),
        pytest.param("instance_group { passive: true }", "'instance_group.passive'", id="a passive instance group"),
        pytest.param("input { is_shape_tensor: true }", "'input.is_shape_tensor'", id="shape tensors"),
        pytest.param("output { is_shape_tensor: true }", "'output.is_shape_tensor'", id="shape tensors as outputs"),
        pytest.param(
            "input { is_non_linear_format_io: true }", "'input.is_non_linear_format_io'", id="formats of one library"
        ),
        pytest.param("instance_group { passive: true }", "'instance_group.passive'", id="passive instances"),
        pytest.param('instance_group { host_policy: "a" }', "'instance_group.host_policy'", id="host policies"),
        pytest.param(
            "instance_group { secondary_devices { device_id: 1 } }",
            "'instance_group.secondary_devices'",
            id="secondary devices",
        ),
        pytest.param("optimization { cuda { graphs: true } }", "'optimization.cuda'", id="CUDA settings"),
        pytest.param('platform: "caffe2_netdef"', "platform 'caffe2_netdef'", id="another platform"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(config: str, named: str) -> None:
    with pytest.raises(ModelError) as caught:
        refuse_unsupported(text_format.Parse(config, proto.ModelConfig()), "m")
    assert str(caught.value).startswith("model 'm': ")
    assert named in str(caught.value)


def test_what_is_offered_passes() -> None:
    config = """
        name: "m" platform: "onnxruntime_onnx" max_batch_size: 8
        version_policy { specific { versions: [1, 2] } }
        input { name: "x" data_type: TYPE_FP32 dims: [4] reshape { shape: [2, 2] } }
        output { name: "y" data_type: TYPE_FP32 dims: [4] label_filename: "labels.txt" }
        instance_group { count: 2 kind: KIND_CPU }
        dynamic_batching {
            preferred_batch_size: [4] max_queue_delay_microseconds: 100 priority_levels: 2 default_priority_level: 1
            priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 5 } }
        }
        optimization { graph { level: 1 } }
        parameters { key: "intra_op_thread_count" value { string_value: "2" } }
        response_cache { enable: false }
        metric_tags { key: "a" value: "b" }
        model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: 1 } } }
        model_transaction_policy { decoupled: true }
    """
    refuse_unsupported(text_format.Parse(config, proto.ModelConfig()), "m")


def test_all_that_is_not_offered_is_named_at_once() -> None:
    config = text_format.Parse(
        'platform: "caffe2_netdef" instance_group { passive: true } optimization { cuda {} }', proto.ModelConfig()
    )
    with pytest.raises(ModelError) as caught:
        refuse_unsupported(config, "m")
    for named in ("'instance_group.passive'", "'optimization.cuda'", "platform 'caffe2_netdef'"):
        assert named in str(caught.value)
