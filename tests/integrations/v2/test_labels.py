"""Labels of classes, from the files of an artifact."""

from pathlib import Path

import pytest

from common.errors import InvalidInput
from integrations.v2.labels import label_files, labels_in


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param("", {}, id="no configuration, no labels"),
        pytest.param('output { name: "y" dims: [ 4 ] label_filename: "a.txt" }', {"y": "a.txt"}, id="one message"),
        pytest.param(
            'output [{ name: "x" }, { name: "y", label_filename: \'a.txt\' } < name: "z" label_filename: "b" >]',
            {"y": "a.txt", "z": "b"},
            id="a list of messages, of which one has none",
        ),
        pytest.param(
            'output { reshape { shape: [] } name: "y" # label_filename: "no"\n label_filename: "a" "\\"b" }',
            {"y": 'a"b'},
            id="a message within, a comment, strings beside each other",
        ),
        pytest.param('input { name: "x" label_filename: "a" }', {}, id="inputs have no classes"),
        pytest.param('output { label_filename: "a" }', {}, id="an output without a name"),
    ],
)
def test_a_configuration_names_label_files_by_output(config: str, expected: dict[str, str]) -> None:
    assert label_files(config) == expected


def test_what_is_no_protobuf_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unfinished string"):
        label_files('output { name: "y')


def artifact(folder: Path, labels: bytes, filename: str = "labels.txt", inside: str = "") -> Path:
    model = folder / "artifact" / inside
    (model / "1").mkdir(parents=True)
    text = f'output [{{ name: "y" label_filename: "{filename}" }}, {{ name: "z" label_filename: "none.txt" }}]'
    (model / "config.pbtxt").write_text(text)
    (model / "labels.txt").write_bytes(labels)
    return folder / "artifact"


def test_a_label_is_a_line_and_a_file_that_is_missing_has_none(tmp_path: Path) -> None:
    assert labels_in(artifact(tmp_path, "großer Hai\r\n\ncat\n".encode())) == {"y": ("großer Hai", "", "cat")}


def test_the_labels_of_an_ensemble_are_in_its_own_folder(tmp_path: Path) -> None:
    found = artifact(tmp_path, b"cat\ndog", inside="whole")
    (found / "step" / "1").mkdir(parents=True)
    (found / "step" / "1" / "model.onnx").touch()
    assert labels_in(found) == {"y": ("cat", "dog")}


@pytest.mark.parametrize(
    ("labels", "filename"),
    [
        pytest.param(b"x" * (2 << 20), "labels.txt", id="more than is read"),
        pytest.param(b"\xff\xfe", "labels.txt", id="not UTF-8"),
        pytest.param(b"cat", "../outside.txt", id="outside of the model"),
        pytest.param(b"cat", "1", id="a folder"),
    ],
)
def test_a_file_that_the_runtime_would_not_take_gives_no_labels(tmp_path: Path, labels: bytes, filename: str) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    assert labels_in(artifact(tmp_path, labels, filename)) == {}


def test_files_that_were_away_are_looked_for_again(tmp_path: Path) -> None:
    assert labels_in(tmp_path / "artifact") == {}
    assert labels_in(artifact(tmp_path, b"cat")) == {"y": ("cat",)}
