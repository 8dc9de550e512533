"""Service and policy files as the command line reads them."""

import io
from pathlib import Path

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.files.documents import read_documents

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def read(tmp_path: Path, text: str | bytes) -> object:
    file = tmp_path / "f.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_documents(file)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param('{"a": [1, 0.5, null, true]}', {"a": [1, 0.5, None, True]}, id="JSON"),
        pytest.param("a: 2026-01-01\n", {"a": "2026-01-01"}, id="a date is a text"),
        pytest.param("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}, id="an anchor"),
        pytest.param("a: {b: 1}\nc: {b: 2}\n", {"a": {"b": 1}, "c": {"b": 2}}, id="one name in two places"),
    ],
)
def test_a_file_is_read_as_json_would_have_it(tmp_path: Path, text: str, document: object) -> None:
    assert read(tmp_path, text) == [document]


def test_a_file_may_hold_several_documents(tmp_path: Path) -> None:
    assert read(tmp_path, "a: 1\n---\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(b"\xb0\x00", "f.yaml is no text in UTF-8", id="a binary file"),
        pytest.param("a: 1\nb: 2\na: 3\n", "the field 'a' is there twice", id="a field that is there twice"),
        pytest.param(LAUGHS, "more than 100000 values, its anchors written out", id="anchors of anchors"),
        pytest.param("a: &a [*a]\n", "more than 100000 values", id="an anchor that names itself"),
        pytest.param("a: " + "[" * 5000, "f.yaml is nested too deeply", id="nested beyond what can be read"),
        pytest.param("a: .nan\n", "has the value 'nan', which JSON cannot say", id="no number"),
        pytest.param("a: !!set {b}\n", "which JSON cannot say; put it in quotes", id="a set"),
        pytest.param("!!python/object:os.system {}\n", "is neither YAML nor JSON", id="an object of Python"),
    ],
)
def test_what_json_cannot_say_is_refused_in_one_sentence(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    with pytest.raises(CliError) as caught:
        read(tmp_path, text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_standard_input_is_named_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(CliError, match=r"^standard input is empty"):
        read_documents(Path("-"))
