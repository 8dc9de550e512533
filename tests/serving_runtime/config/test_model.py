"""Values of a config are checked once, at load."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.batching import QueuePolicy, TimeoutAction
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import reshaped

X = 'input { name: "x" data_type: TYPE_FP32 dims: [4] } output { name: "y" data_type: TYPE_FP32 dims: [4] }'


def parsed(text: str) -> ModelConfig:
    return ModelConfig.from_message(text_format.Parse(f'name: "m" {text}', proto.ModelConfig()))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            "response_cache of a decoupled model is not supported",
            id="a cache of streams",
        ),
        pytest.param(
            "response_cache { enable: true } sequence_batching { }",
            "response_cache of a model of sequences is not supported",
            id="a cache of states",
        ),
        pytest.param(
            "max_batch_size: 4 response_cache { enable: true } dynamic_batching { preserve_ordering: true }",
            "response_cache does not go with preserve_ordering",
            id="a cache beside an order",
        ),
        pytest.param("max_batch_size: -1", "max_batch_size must be >= 0", id="negative batch size"),
        pytest.param(
            "max_batch_size: 4 dynamic_batching { preferred_batch_size: [8] }",
            "preferred_batch_size must be in [1, 4], found [8]",
            id="preferred above the maximum",
        ),
        pytest.param(
            "dynamic_batching { }", "dynamic_batching needs max_batch_size > 0", id="batching without batches"
        ),
        pytest.param(
            "max_batch_size: 4 dynamic_batching { priority_levels: 2 }",
            "default_priority_level must be in [1, 2], found 0",
            id="levels without a default",
        ),
        pytest.param(
            "max_batch_size: 4 dynamic_batching { priority_queue_policy { key: 3 value { } } }",
            "priority_queue_policy names level 3",
            id="a policy for a level that is not there",
        ),
        pytest.param(
            """instance_group { rate_limiter { resources { name: "r" count: 1 }
            resources { name: "r" count: 2 global: true } } }""",
            "rate_limiter names resource 'r' twice",
            id="a resource twice",
        ),
        pytest.param(
            "instance_group { rate_limiter { resources { count: 1 } } }",
            "must have a name",
            id="a resource without a name",
        ),
        pytest.param("instance_group { kind: KIND_GPU }", "KIND_GPU is not supported", id="instances on GPUs"),
        pytest.param(
            "instance_group { kind: KIND_CPU gpus: [0] }", "names gpus; they need kind KIND_GPU", id="GPUs for the CPU"
        ),
        pytest.param(
            "instance_group { kind: KIND_MODEL }", "kind KIND_MODEL is not supported", id="the model's choice"
        ),
        pytest.param(
            'backend: "pytorch" instance_group { kind: KIND_GPU gpus: [1, 1] }',
            "gpus must be different numbers from 0, found [1, 1]",
            id="a GPU twice",
        ),
        pytest.param('input { name: "x" dims: [4] }', "'x' must have a data_type", id="no data type"),
        pytest.param('input { name: "x" data_type: TYPE_FP32 }', "dims must not be empty", id="empty dims"),
        pytest.param('input { name: "x" data_type: TYPE_FP32 dims: [0] }', "dims must be >= 1", id="a dimension of 0"),
        pytest.param(
            'input { name: "x" data_type: TYPE_FP32 dims: [4] reshape { shape: [3] } }',
            "must hold as many elements",
            id="a reshape to another size",
        ),
        pytest.param(
            'input { name: "x" data_type: TYPE_FP32 dims: [1] reshape { } }',
            "needs max_batch_size > 0",
            id="an empty reshape without batches",
        ),
        pytest.param(f"{X} {X}", "input 'x' is configured twice", id="an input twice"),
        pytest.param(
            'input { name: "x" data_type: TYPE_FP32 dims: [4] format: FORMAT_NCHW }',
            "format NHWC or NCHW needs 3 dims",
            id="a format that does not fit",
        ),
        pytest.param(
            'input { name: "x" data_type: TYPE_FP32 dims: [2, -1, 3] reshape { shape: [6, -1] } }',
            "must hold as many elements as dims [2, -1, 3], between variable dimensions too",
            id="a reshape that moves elements over a variable dimension",
        ),
        pytest.param(
            'input { name: "x" data_type: TYPE_FP32 dims: [-1, 3] reshape { shape: [-1, -1] } }',
            "must hold as many elements",
            id="a reshape with more variable dimensions",
        ),
        pytest.param(
            """max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2
            default_priority_level: 1 }""",
            "preserve_ordering allows one priority level",
            id="an order beside priorities",
        ),
        pytest.param(
            """max_batch_size: 4 dynamic_batching { preserve_ordering: true
            default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 } }""",
            "preserve_ordering does not go with a queue policy whose timeout_action is DELAY",
            id="an order beside delayed requests",
        ),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(config: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        parsed(config)
    assert str(caught.value).startswith("model 'm': ")
    assert sentence in str(caught.value)


def test_a_whole_config() -> None:
    config = parsed(
        f"""max_batch_size: 8 {X} instance_group {{ count: 2 }} instance_group {{ kind: KIND_CPU }}
        dynamic_batching {{ preferred_batch_size: [4, 8] max_queue_delay_microseconds: 100
            priority_levels: 2 default_priority_level: 2 default_queue_policy {{ max_queue_size: 5 }}
            priority_queue_policy {{ key: 1 value {{ timeout_action: DELAY }} }} }}"""
    )
    assert config.instance_count == 3
    assert config.inputs[0].dims == (4,)
    batching = config.batching
    assert batching is not None
    assert (batching.max_batch_size, batching.max_queue_delay_us) == (8, 100)
    assert batching.preferred_batch_sizes == {4, 8}
    assert batching.queues == {1: QueuePolicy(TimeoutAction.DELAY), 2: QueuePolicy(max_queue_size=5)}


@pytest.mark.feature("C5")
def test_a_count_is_of_each_gpu_that_is_listed() -> None:
    config = parsed(f"""backend: "onnxruntime" {X} instance_group {{ kind: KIND_GPU gpus: [0, 2] count: 3 }}
        instance_group {{ kind: KIND_CPU count: 2 }}""")
    assert config.instance_count == 8


@pytest.mark.parametrize(
    ("policy", "asked", "timeout"),
    [
        pytest.param(QueuePolicy(default_timeout_us=100), 0, 100, id="nobody asks: the default"),
        pytest.param(QueuePolicy(default_timeout_us=100), 50, 100, id="asked where it is not allowed: the default"),
        pytest.param(QueuePolicy(default_timeout_us=100, allow_timeout_override=True), 50, 50, id="shorter is taken"),
        pytest.param(QueuePolicy(default_timeout_us=100, allow_timeout_override=True), 500, 100, id="longer is not"),
        pytest.param(QueuePolicy(allow_timeout_override=True), 500, 500, id="no default: what is asked"),
        pytest.param(QueuePolicy(allow_timeout_override=True), 0, 0, id="neither: no timeout"),
    ],
)
def test_a_request_may_only_shorten_its_timeout(policy: QueuePolicy, asked: int, timeout: int) -> None:
    assert policy.timeout_us(asked) == timeout


@pytest.mark.feature("C2")
@pytest.mark.parametrize(
    ("shape", "pattern", "target", "found"),
    [
        pytest.param((2, 3), (2, 3), (6,), (6,), id="fixed"),
        pytest.param((2, 7, 3), (2, -1, 3), (1, 2, -1, 3), (1, 2, 7, 3), id="one variable dimension"),
        pytest.param((5, 2, 7), (-1, 2, -1), (-1, 1, 2, -1), (5, 1, 2, 7), id="several, in order"),
        pytest.param((1,), (1,), (), (), id="to a scalar per row"),
    ],
)
def test_variable_dimensions_carry_over_a_reshape(
    shape: tuple[int, ...], pattern: tuple[int, ...], target: tuple[int, ...], found: tuple[int, ...]
) -> None:
    assert reshaped(shape, pattern, target) == found
