"""Folders are models, numbers are versions, the policy chooses."""

from pathlib import Path

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.engine.repository import chosen_versions, model_folder, scan
from serving_runtime.errors import ModelError


def policy(text: str):
    return text_format.Parse(text, proto.ModelConfig()).version_policy


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        pytest.param("", (10,), id="by default the latest one"),
        pytest.param("version_policy { latest { } }", (10,), id="latest without a number: one"),
        pytest.param("version_policy { latest { num_versions: 2 } }", (3, 10), id="the latest two, by number not name"),
        pytest.param("version_policy { latest { num_versions: 9 } }", (1, 3, 10), id="more than there are: all"),
        pytest.param("version_policy { all { } }", (1, 3, 10), id="all"),
        pytest.param("version_policy { specific { versions: [3, 1] } }", (1, 3), id="specific ones"),
    ],
)
@pytest.mark.feature("C4")
def test_the_version_policy(text: str, chosen: tuple[int, ...]) -> None:
    assert chosen_versions((1, 3, 10), policy(text), "m") == chosen


def test_a_specific_version_must_be_there() -> None:
    with pytest.raises(ModelError, match=r"asks for version 2, found \[1, 3\]"):
        chosen_versions((1, 3), policy("version_policy { specific { versions: [1, 2] } }"), "m")


def test_a_model_without_versions_is_refused() -> None:
    with pytest.raises(ModelError, match="model 'm' has no version to serve"):
        chosen_versions((), policy(""), "m")


def test_only_plain_numbers_are_versions(tmp_path: Path) -> None:
    for name in ("1", "10", "02", "0", "v3", "-4", "٣", "saved_model"):
        (tmp_path / "m" / name).mkdir(parents=True)
    (tmp_path / "m" / "5").write_text("a file")
    assert model_folder(tmp_path / "m").versions == (1, 10)


def test_hidden_folders_and_files_are_no_models(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / "README").write_text("")
    (tmp_path / "m" / "1").mkdir(parents=True)
    assert [folder.name for folder in scan([tmp_path])] == ["m"]


def test_a_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"--model-repository .*nowhere: no such folder"):
        scan([tmp_path / "nowhere"])


@pytest.mark.feature("C26")
def test_a_model_in_two_repositories_is_refused(tmp_path: Path) -> None:
    for root in ("a", "b"):
        (tmp_path / root / "m" / "1").mkdir(parents=True)
    with pytest.raises(ModelError, match="model 'm' is in two repositories"):
        scan([tmp_path / "a", tmp_path / "b"])
