"""What must be true of the choice on this repository."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.affected import rules
from tests.affected.__main__ import ROOT, report, tree_of
from tests.affected.changes import Change, Repository
from tests.affected.graph import is_test
from tests.affected.selection import Chosen, Tree, select

REPOSITORY = Repository(ROOT)


@functools.cache
def tree() -> Tree:
    return tree_of(REPOSITORY)


def of_all(path: str) -> Chosen:
    """Choose as if every line of a file were new."""
    text = REPOSITORY.read(path)
    assert text is not None, f"{path} is gone; name another"
    return select([Change(path, "", text)], tree())


@pytest.mark.parametrize(
    ("path", "near", "nowhere"),
    [
        pytest.param(
            "serving_runtime/scheduler/batching.py",
            "tests/serving_runtime/scheduler/test_batching.py",
            "tests/accounts/",
            id="a module of the scheduler: its tests and none of accounts",
        ),
        pytest.param(
            "frontend/templates/deployments/webhook_list.html",
            "tests/events/web/test_webhook_views.py",
            "tests/serving_runtime/",
            id="a template: the tests of its page and none of the runtime",
        ),
        pytest.param(
            "platform/deployments/domain/rollout/transitions.py",
            "tests/deployments/domain/rollout/test_rollout.py",
            "tests/serving_runtime/",
            id="the rollout's machine: its tests and none of the runtime",
        ),
        pytest.param(
            "platform/fairlead_cli/commands/pull.py",
            "tests/fairlead_cli/commands/test_pull.py",
            "tests/deployments/",
            id="a command: its tests and none of the control plane",
        ),
        pytest.param(
            "platform/registry/domain/lineage.py",
            "tests/nets/contracts/test_imports.py",
            "tests/serving_runtime/",
            id="any module: the rules that all sources follow",
        ),
        pytest.param(
            "docs/reference/cluster-file.md",
            "tests/clusters/domain/cluster_file/test_docs.py",
            "tests/accounts/",
            id="a page of the documentation: who reads it",
        ),
    ],
)
def test_a_change_reaches_its_tests_and_not_strangers(path: str, near: str, nowhere: str) -> None:
    found = of_all(path)
    assert found.everything is None
    assert near in found.near
    assert [test for test in found.near if test.startswith(nowhere)] == []


def test_every_test_file_is_chosen_by_a_change_of_itself() -> None:
    tests = [path for path in tree().sources if is_test(path)]
    assert set(select([Change(path, "", REPOSITORY.read(path)) for path in tests], tree()).near) == set(tests)


def test_every_file_is_known_or_means_every_test_on_purpose() -> None:
    """A new kind of file gets a rule, or a line here that says that it is every test's."""
    mean = {"requirements/base.txt", "requirements/dev.txt", "pyproject.toml"}
    unknown = [
        path
        for path in tree().paths
        if not path.endswith(".py") and not path.startswith("tests/") and rules.beside(path) is None
        if path not in mean and not tree().graph.distances([(path, "file")])
    ]
    assert unknown == []


@pytest.mark.parametrize("table", [rules.BESIDE, rules.EVERYTHING], ids=["beside", "everything"])
def test_each_pattern_matches_a_file(table: dict[str, object]) -> None:
    paths = tree().paths
    assert [pattern for pattern in table if not any(rules.matches(path, pattern) for path in paths)] == []


def test_each_rule_gives_a_test() -> None:
    tests = [path for path in tree().sources if is_test(path)]
    given = {pattern for patterns in rules.BESIDE.values() for pattern in patterns}
    assert [pattern for pattern in sorted(given) if not any(rules.matches(test, pattern) for test in tests)] == []


def test_the_report_says_what_is_left_out_and_how_it_is_run() -> None:
    found = Chosen(["tests/browser/test_upload.py"], ["tests/e2e/test_canary.py", "tests/cluster/test_canary.py"])
    texts = {
        "tests/browser/test_upload.py": "pytestmark = pytest.mark.browser",
        "tests/e2e/test_canary.py": "def test_it(anywhere): ...",
        "tests/cluster/test_canary.py": "pytestmark = pytest.mark.cluster",
    }
    assert list(report(found, texts.get, far=False)) == [
        "No test file of the Python suite uses it.",
        "Left to CI, as they reach it only through a process (CHANGED=all runs them): tests/e2e/test_canary.py.",
        'Not run, of the browser suite, nearest first: make test FILE="tests/browser/test_upload.py"',
        "Not run, of the cluster suite, nearest first: "
        'make test FILE="tests/e2e/test_canary.py tests/cluster/test_canary.py"',
    ]


def test_the_command_line_says_which_commit_is_not_there() -> None:
    command = [sys.executable, "-m", "tests.affected", "nowhere"]
    done = subprocess.run(command, cwd=Path(ROOT), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "What changed is not known: no commit 'nowhere'.\n"
