"""Folders of programs: which may be run, and what counts for their digest."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import InvalidInput
from common.programs import parse_folders
from integrations.artifacts import programs
from integrations.artifacts.programs import check_unchanged, digest_of_program, recorded

Change = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a program with a file, a command, a link and an empty folder."""
    made = tmp_path / "programs" / "sentiment-3"
    (made / "data").mkdir(parents=True)
    (made / "serve").write_text("#!/bin/sh\n")
    (made / "serve").chmod(0o755)
    (made / "words.txt").write_text("good bad\n")
    (made / "current").symlink_to("words.txt")
    return made


def record(folder: Path, tmp_path: Path) -> str:
    return recorded(str(folder), [tmp_path / "programs"], home=tmp_path / "home")


def test_the_same_content_has_the_same_record_wherever_it_is(folder: Path, tmp_path: Path) -> None:
    found = record(folder, tmp_path)
    assert found == f"sentiment-3@{digest_of_program(folder)}"
    os.utime(folder / "words.txt", (1, 1))
    (folder / "words.txt").chmod(0o600)
    other = folder.rename(tmp_path / "elsewhere").rename(folder)
    assert record(other, tmp_path) == found
    check_unchanged(str(folder), found, [folder.parent], home=tmp_path / "home", revision="digits-00001")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda at: (at / "words.txt").write_text("good"), id="content"),
        pytest.param(lambda at: (at / "words.txt").chmod(0o755), id="executable"),
        pytest.param(lambda at: (at / "more").write_text(""), id="a file more"),
        pytest.param(lambda at: (at / "words.txt").rename(at / "data" / "words.txt"), id="a file elsewhere"),
        pytest.param(lambda at: (at / "data").rmdir(), id="a folder less"),
        pytest.param(lambda at: ((at / "current").unlink(), (at / "current").symlink_to("serve")), id="another target"),
        pytest.param(lambda at: ((at / "data").rmdir(), (at / "data").write_text("")), id="a file for a folder"),
    ],
)
def test_a_changed_folder_is_refused(folder: Path, tmp_path: Path, change: Change) -> None:
    before = record(folder, tmp_path)
    change(folder)
    said = "has other content than when revision digits-00001 was applied; put each release of a program into a folder"
    with pytest.raises(InvalidInput, match=said):
        check_unchanged(str(folder), before, [folder.parent], home=tmp_path / "home", revision="digits-00001")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda at: (at / "out").symlink_to("../other"), "a link out of the program's folder", id="link"),
        pytest.param(lambda at: (at / "out").symlink_to("/etc/passwd"), "a link out of", id="absolute link"),
        pytest.param(
            lambda at: ((at / "here").symlink_to("."), (at / "out").symlink_to("here/data/../..")),
            "a link out of",
            id="link through a link",
        ),
        pytest.param(lambda at: os.mkfifo(at / "pipe"), "is no file, folder or link", id="pipe"),
    ],
)
def test_what_no_program_may_have_is_refused(folder: Path, tmp_path: Path, make: Change, said: str) -> None:
    make(folder)
    with pytest.raises(InvalidInput, match=said):
        record(folder, tmp_path)


def test_large_programs_are_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_FILES", 3)
    with pytest.raises(InvalidInput, match="has more than 3 entries"):
        record(folder, tmp_path)
    monkeypatch.undo()
    with (folder / "weights").open("wb") as file:
        file.truncate(programs.MOST_BYTES)
    with pytest.raises(InvalidInput, match="has more than 1 GiB"):
        record(folder, tmp_path)


def test_only_folders_directly_in_an_allowed_one_are_run(folder: Path, tmp_path: Path) -> None:
    home, allowed = tmp_path / "home", [folder.parent]
    (folder.parent / "linked").symlink_to(folder)
    (folder.parent / "empty").mkdir()
    for named, said in (
        (folder / "data", "runs the programs of folders directly in"),
        (folder.parent, "runs the programs of folders directly in"),
        (Path("/etc"), "runs the programs of folders directly in"),
        (folder.parent / "linked", "is a link; name the program's own folder"),
        (folder.parent / "absent", "is no folder on this machine"),
        (folder.parent / "empty", "is empty"),
    ):
        with pytest.raises(InvalidInput, match=said):
            recorded(str(named), allowed, home=home)
    with pytest.raises(InvalidInput, match=r"runs no programs; have its operator name .* in FAIRLEAD_PROGRAM_FOLDERS"):
        recorded(str(folder), [], home=home)
    for own in (folder, folder / "data", folder.parent.parent / "programs" / "sentiment-3" / "x"):
        with pytest.raises(InvalidInput, match="files of the platform itself"):
            recorded(str(folder), allowed, home=own)


def test_the_setting_names_absolute_folders() -> None:
    assert parse_folders("") == ()
    assert parse_folders("/srv/programs: /opt/programs/ :/srv/programs") == (
        Path("/srv/programs"),
        Path("/opt/programs"),
    )
    for wrong in ("programs", "/", "/srv/../etc", "/srv:programs"):
        with pytest.raises(InvalidInput, match="expected absolute paths of folders"):
            parse_folders(wrong)
