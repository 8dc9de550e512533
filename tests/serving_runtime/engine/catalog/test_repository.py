"""Folders are models, numbers are versions, the policy chooses."""

from pathlib import Path

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError, NotFound
from serving_runtime.engine.catalog.repository import (
    LocalRoot,
    Repository,
    chosen_versions,
    is_model_name,
    marks_by_version,
    model_folder,
)


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


def repository(*roots: Path) -> Repository:
    return Repository([LocalRoot(root) for root in roots])


def test_hidden_folders_and_files_are_no_models(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / "README").write_text("")
    (tmp_path / "m" / "1").mkdir(parents=True)
    assert list(repository(tmp_path).scan()) == ["m"]


@pytest.mark.parametrize("name", ["", ".", "..", "../m", "/etc", "a/b", ".cache", "a\\b", "a\0b"])
def test_a_name_that_leads_elsewhere_is_no_models(tmp_path: Path, name: str) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    assert not is_model_name(name)
    with pytest.raises(NotFound, match="there is no such model"):
        repository(tmp_path / "m").find(name)


def test_a_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"--model-repository .*nowhere: no such folder"):
        repository(tmp_path / "nowhere").scan()


@pytest.mark.feature("C26")
def test_a_model_in_two_repositories_is_in_none_and_its_neighbours_are(tmp_path: Path) -> None:
    for root, name in (("a", "m"), ("b", "m"), ("a", "first"), ("b", "second")):
        (tmp_path / root / name / "1").mkdir(parents=True)
    both = repository(tmp_path / "a", tmp_path / "b")
    found = both.scan()
    assert isinstance(found["m"], ModelError)
    assert [place.root.name for name in ("first", "second") if not isinstance(place := found[name], ModelError)] == [
        "a",
        "b",
    ]
    with pytest.raises(ModelError, match="model 'm' is in two repositories"):
        both.find("m")


def test_marks_change_with_files_and_are_parted_by_version(tmp_path: Path) -> None:
    file = tmp_path / "m" / "2" / "model.onnx"
    file.parent.mkdir(parents=True)
    file.write_text("a")
    (tmp_path / "m" / "config.pbtxt").write_text("")
    (tmp_path / "m" / "labels.txt").write_text("cat")
    before = model_folder(tmp_path / "m").marks
    file.write_text("ab")
    after = model_folder(tmp_path / "m").marks
    (common, versions), (common_after, versions_after) = marks_by_version(before), marks_by_version(after)
    assert set(common) == {"labels.txt"}, "the config is compared by what it says"
    assert common == common_after
    assert versions != versions_after
    assert set(versions) == {2}
