"""config.pbtxt is read in full or refused in one sentence; as JSON it is what V2 clients expect."""

from pathlib import Path

import pytest

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config import text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("max_batch: 4\n", 'no field named "max_batch"', id="an unknown field is named"),
        pytest.param(
            "max_batchsize: 4\n", 'named "max_batchsize"; did you mean max_batch_size?', id="a misspelt field"
        ),
        pytest.param("max_batch_size: many\n", "max_batch_size", id="a value of the wrong type names its field"),
        pytest.param('input [ { name: "x"', "line 1", id="an unfinished file names the line"),
        pytest.param("input [ { data_type: TYPE_FP33 } ]", "TYPE_FP33", id="an unknown enum value is named"),
    ],
)
def test_a_config_that_does_not_parse_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "config.pbtxt").write_text(content)
    with pytest.raises(ModelError) as caught:
        text.read(tmp_path / "config.pbtxt", "m")
    assert str(caught.value).startswith("model 'm': config.pbtxt line ")
    assert sentence in str(caught.value)


def test_a_config_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="cannot be read"):
        text.read(tmp_path / "config.pbtxt", "m")


def test_an_absent_config_is_an_empty_one(tmp_path: Path) -> None:
    assert text.read(tmp_path / "config.pbtxt", "m") == proto.ModelConfig()


def test_json_writes_large_integers_as_numbers_enums_as_names_and_defaults_out() -> None:
    config = proto.ModelConfig(name="m")
    config.input.add(name="x", data_type=11, dims=[-1, 2**40])
    config.parameters["k"].string_value = "v"
    shown = text.as_json(config)
    assert shown["input"][0]["dims"] == [-1, 2**40]
    assert shown["input"][0]["data_type"] == "TYPE_FP32"
    assert shown["parameters"] == {"k": {"string_value": "v"}}
    assert shown["max_batch_size"] == 0
    assert "dynamic_batching" not in shown
