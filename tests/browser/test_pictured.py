"""Which pages a change touches, by Git; without its history none."""

import subprocess
from pathlib import Path

import pytest

from tests.browser.states.pictured import changed, is_touched

PAGE = {
    "frontend/templates/deployments/home.html",
    "frontend/templates/base.html",
    "platform/deployments/web/services/views.py",
    "platform/deployments/web/",
    "tests/browser/states/of_home.py",
}


@pytest.mark.parametrize(
    "file",
    [
        "frontend/templates/base.html",
        "platform/deployments/web/services/views.py",
        "platform/deployments/web/pages.py",
        "tests/browser/states/of_home.py",
        "frontend/styles/tokens.css",
        "frontend/src/elements/live-stream.ts",
    ],
)
def test_a_page_is_touched_by_what_it_is_made_of(file: str) -> None:
    assert is_touched(PAGE, {"README.md", file})


@pytest.mark.parametrize(
    "file",
    [
        "frontend/templates/deployments/rollout_detail.html",
        "platform/deployments/web/policies/views.py",
        "platform/deployments/services.py",
        "tests/browser/states/of_models.py",
        "docs/README.md",
    ],
)
def test_a_page_is_not_touched_by_other_files(file: str) -> None:
    assert not is_touched(PAGE, {file})
    assert not is_touched(PAGE, set())


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "--message", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits on main."""
    git(tmp_path, "init", "--initial-branch", "main")
    commit(tmp_path, "first")
    commit(tmp_path, "second")
    return tmp_path


def test_on_main_the_last_commit_counts(repository: Path) -> None:
    (repository / "first").write_text("not committed")
    assert changed(repository) == {"first", "second"}


def test_on_a_branch_all_of_it_counts(repository: Path) -> None:
    git(repository, "switch", "--create", "branch")
    commit(repository, "third")
    commit(repository, "fourth")
    git(repository, "switch", "main")
    commit(repository, "fifth")
    git(repository, "switch", "branch")
    assert changed(repository) == {"third", "fourth"}


def test_without_history_nothing_counts(tmp_path: Path, repository: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "1", repository.as_uri(), str(shallow))
    assert changed(shallow) == set()


def test_without_git_nothing_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert changed(tmp_path) == set()
    monkeypatch.setenv("PATH", "")
    assert changed(tmp_path / "..") == set()
