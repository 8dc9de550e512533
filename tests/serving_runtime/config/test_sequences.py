"""sequence_batching: what is read, and what makes no sense."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import ModelError
from serving_runtime.config.sequences import Control, ControlKind, SequencePolicy, sequence_policy
from serving_runtime.config.support import refuse_unsupported

pytestmark = pytest.mark.feature("C9")


def parsed(text: str, batch: int = 4) -> SequencePolicy:
    message = text_format.Parse(f'name: "m" max_batch_size: {batch} {text}', proto.ModelConfig())
    refuse_unsupported(message, "m")
    policy = sequence_policy(message)
    assert policy is not None
    return policy


def control(text: str) -> str:
    return f'sequence_batching {{ control_input {{ name: "c" control {{ {text} }} }} }}'


def state(text: str) -> str:
    return f'sequence_batching {{ state {{ input_name: "i" output_name: "o" data_type: TYPE_FP32 {text} }} }}'


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            "sequence_batching { direct { minimum_slot_utilization: 1.5 } }",
            "minimum_slot_utilization must be in [0, 1], found 1.5",
            id="more than all slots",
        ),
        pytest.param(
            "sequence_batching { oldest { } }", "max_candidate_sequences must be >= 1, found 0", id="no candidates"
        ),
        pytest.param(
            "sequence_batching { oldest { max_candidate_sequences: 9 preferred_batch_size: [5] } }",
            "preferred_batch_size must be in [1, 4], found [5]",
            id="preferred above the maximum",
        ),
        pytest.param(
            "sequence_batching { iterative_sequence: true }", "'sequence_batching.iterative_sequence'", id="iterative"
        ),
        pytest.param(
            state("dims: [1] use_growable_memory: true"), "'sequence_batching.state.use_growable_memory'", id="growable"
        ),
        pytest.param(
            "sequence_batching { } model_transaction_policy { decoupled: true }",
            "decoupled model is not supported",
            id="decoupled",
        ),
        pytest.param('sequence_batching { control_input { name: "c" } }', "must have one control", id="no control"),
        pytest.param(control("kind: CONTROL_SEQUENCE_START"), "must have one of int32_false_true", id="no values"),
        pytest.param(
            control("kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] fp32_false_true: [0, 1]"),
            "must have one of",
            id="values of two types",
        ),
        pytest.param(
            control("kind: CONTROL_SEQUENCE_END fp32_false_true: [1]"),
            "must have two values, found [1.0]",
            id="one value",
        ),
        pytest.param(
            control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"),
            "a correlation id needs a data_type of",
            id="a float as id",
        ),
        pytest.param(
            control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 bool_false_true: [false, true]"),
            "no values for false and true",
            id="an id with values",
        ),
        pytest.param(
            f"""input {{ name: "c" data_type: TYPE_INT32 dims: [1] }}
            {control("kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1]")}""",
            "'c' is given by the scheduler; it cannot be another input too",
            id="given by client and scheduler",
        ),
        pytest.param(state(""), "dims must be >= 1", id="a state without dims"),
        pytest.param(
            state("dims: [2] initial_state { data_type: TYPE_FP32 dims: [3] zero_data: true }"),
            "must have fixed dims that fit the state's [2], found [3]",
            id="an initial state of another shape",
        ),
        pytest.param(
            state("dims: [-1] initial_state { data_type: TYPE_FP32 dims: [-1] zero_data: true }"),
            "must have fixed dims",
            id="a variable initial state",
        ),
        pytest.param(
            state("dims: [2] initial_state { data_type: TYPE_INT8 dims: [2] zero_data: true }"),
            "must have the state's data_type TYPE_FP32",
            id="an initial state of another type",
        ),
        pytest.param(
            state("dims: [2] initial_state { data_type: TYPE_FP32 dims: [2] }"),
            "must have zero_data or data_file",
            id="no data",
        ),
        pytest.param(
            state('dims: [2] initial_state { data_type: TYPE_FP32 dims: [2] data_file: "../x" }'),
            "must be a plain file name",
            id="a file elsewhere",
        ),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(config: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        parsed(config)
    assert str(caught.value).startswith("model 'm': ")
    assert sentence in str(caught.value)


def test_a_direct_policy_has_a_slot_per_row_and_forgets_after_a_second() -> None:
    policy = parsed("sequence_batching { }")
    assert (policy.direct, policy.slots, policy.max_idle_us) == (True, 4, 1_000_000)
    assert parsed("sequence_batching { direct { } }", batch=0).slots == 1


def test_an_oldest_policy() -> None:
    policy = parsed(
        """sequence_batching { max_sequence_idle_microseconds: 7 oldest { max_candidate_sequences: 9
        preferred_batch_size: [2, 4] max_queue_delay_microseconds: 5 preserve_ordering: true } }"""
    )
    assert (policy.direct, policy.slots, policy.max_idle_us, policy.max_queue_delay_us) == (False, 9, 7, 5)
    assert policy.preferred_batch_sizes == {2, 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "int32_false_true: [2, 3] kind: CONTROL_SEQUENCE_READY",
            Control("c", ControlKind.READY, DATATYPES["INT32"], (2, 3)),
        ),
        ("fp32_false_true: [-1, 1]", Control("c", ControlKind.START, DATATYPES["FP32"], (-1.0, 1.0))),
        (
            "kind: CONTROL_SEQUENCE_END bool_false_true: [false, true]",
            Control("c", ControlKind.END, DATATYPES["BOOL"], (False, True)),
        ),
        (
            "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING",
            Control("c", ControlKind.CORRID, DATATYPES["BYTES"]),
        ),
    ],
)
def test_control_inputs_of_every_type(text: str, expected: Control) -> None:
    assert parsed(control(text)).controls == (expected,)


def test_a_variable_state_begins_as_one_element_and_a_file_says_otherwise() -> None:
    (variable,) = parsed(state("dims: [2, -1]")).states
    assert (variable.dims, variable.initial_dims, variable.initial_file) == ((2, -1), (2, 1), "")
    (file,) = parsed(state('dims: [2, -1] initial_state { data_type: TYPE_FP32 dims: [2, 5] data_file: "s" }')).states
    assert (file.initial_dims, file.initial_file) == ((2, 5), "s")
