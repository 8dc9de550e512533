"""Edits of config.pbtxt; what comes out is read by protobuf's own parser with Triton's message."""

import pytest
from google.protobuf import json_format, text_format

from common.errors import InvalidInput
from integrations.clusters.local.model_config import rewrite
from serving_runtime.proto import ModelConfig

BROUGHT = """
# made by hand; name: "not this one" }
name: "resnet" platform: 'onnxruntime_onnx'
max_batch_size: 8;
input [ { name: "x", data_type: TYPE_FP32, dims: [ 3, 224 ] }, { name: "mask" data_type: TYPE_BOOL dims: -1 } ]
output < name: "y" data_type: TYPE_FP32 dims: 10 >
instance_group { kind: KIND_CPU count: 2 }
instance_group { kind: KIND_GPU }
parameters { key: "note" value: { string_value: "a \\"quoted\\" # brace } " "and more" } }
"""


def parsed(text: str) -> dict[str, object]:
    return json_format.MessageToDict(text_format.Parse(text, ModelConfig()), preserving_proto_field_name=True)


def test_only_the_name_changes():
    before, after = parsed(BROUGHT), parsed(rewrite(BROUGHT, name="digits", fields={}))
    assert after == {**before, "name": "digits"}


def test_an_empty_config_gets_a_name():
    assert parsed(rewrite("", name="digits", fields={})) == {"name": "digits"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"max_batch_size": 32}, {"max_batch_size": 32}, id="a number"),
        pytest.param(
            {"instance_group": [{"kind": "KIND_CPU", "count": 3}]},
            {"instance_group": [{"kind": "KIND_CPU", "count": 3}]},
            id="a repeated field is replaced as a whole",
        ),
        pytest.param(
            {
                "dynamic_batching": {
                    "preferred_batch_size": [4, 8],
                    "max_queue_delay_microseconds": 100,
                    "preserve_ordering": True,
                }
            },
            {
                "dynamic_batching": {
                    "preferred_batch_size": [4, 8],
                    "max_queue_delay_microseconds": "100",
                    "preserve_ordering": True,
                }
            },
            id="a message with a list, an integer and a truth",
        ),
        pytest.param({"dynamic_batching": {}}, {"dynamic_batching": {}}, id="an empty message"),
        pytest.param(
            {"parameters": {"intra_op_thread_count": {"string_value": "2"}, 'odd "key"\n': {"string_value": "ü\\"}}},
            {"parameters": {"intra_op_thread_count": {"string_value": "2"}, 'odd "key"\n': {"string_value": "ü\\"}}},
            id="a map with texts that need quoting",
        ),
        pytest.param(
            {"input": [{"name": "TYPE_FP32", "data_type": "TYPE_FP32", "dims": [4]}]},
            {"input": [{"name": "TYPE_FP32", "data_type": "TYPE_FP32", "dims": ["4"]}]},
            id="an enum value is no text, a text that looks like one is",
        ),
        pytest.param(
            {"version_policy": {"specific": {"versions": [2]}}},
            {"version_policy": {"specific": {"versions": ["2"]}}},
            id="messages in messages",
        ),
    ],
)
def test_fields_are_laid_over_what_was_brought(fields, expected):
    assert parsed(rewrite(BROUGHT, name="digits", fields=fields)) == {**parsed(BROUGHT), "name": "digits", **expected}


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        pytest.param('name: "x', {}, "unfinished string", id="an unfinished string"),
        pytest.param("input { name: 1", {}, "ends inside field 'input'", id="an open brace"),
        pytest.param("max_batch_size:", {}, "ends inside field 'max_batch_size'", id="no value"),
        pytest.param("}", {}, "'}' where a field's name was expected", id="a closing brace"),
        pytest.param("", {"max_batch_size": None}, "max_batch_size is None", id="a value that is none"),
        pytest.param("", {"input": [{"dims": object()}]}, r"input\[0\].dims", id="a value deep inside"),
        pytest.param("", {"name": "x"}, "leave it out", id="a name of its own"),
    ],
)
def test_refusals(text, fields, said):
    with pytest.raises(InvalidInput, match=said):
        rewrite(text, name="digits", fields=fields)
