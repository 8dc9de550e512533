"""docs/reference/cli.md and docs/how-to/roll-out-from-ci.md say what the command line does."""

import re
from pathlib import Path

import pytest
import yaml

from fairlead_cli import tree
from fairlead_cli.__main__ import build_parser
from fairlead_cli.errors import EXIT_CODES
from fairlead_cli.reference import page

DOCS = Path(__file__).parents[2] / "docs"
CI = (DOCS / "how-to" / "roll-out-from-ci.md").read_text(encoding="utf-8")


def test_the_page_is_the_one_that_the_commands_make() -> None:
    written = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == page(), "write it anew: python -m fairlead_cli.reference > docs/reference/cli.md"


def examples() -> dict[str, str]:
    """Return the CI files of the page by name."""
    return dict(re.findall(r"`(\.git[\w./-]+\.ya?ml)`:\n```yaml\n(.*?)```", CI, re.DOTALL))


def commands_of(document: object) -> list[str]:
    """Return the calls of `fairlead` in all texts of a parsed file."""
    if isinstance(document, dict):
        return [call for value in document.values() for call in commands_of(value)]
    if isinstance(document, list):
        return [call for value in document for call in commands_of(value)]
    return re.findall(r"fairlead ((?:[a-z]+ ?)+)", document) if isinstance(document, str) else []


def options_of(text: str) -> set[str]:
    return {
        option
        for line in text.replace("\\\n", " ").splitlines()
        if "fairlead " in line
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", line)
    }


@pytest.mark.parametrize("name", [".github/workflows/rollout.yml", ".gitlab-ci.yml"])
def test_the_ci_examples_are_yaml_that_calls_commands_that_there_are(name: str) -> None:
    text = examples()[name]
    branches = {" ".join(branch.words): branch for branch in tree.walk(tree.read(build_parser()))}
    called = {" ".join(call.split()[:2]) for call in commands_of(yaml.safe_load(text))}

    assert {"policies apply", "models push", "rollouts start"} <= called
    assert called <= {*branches}
    known = {option for words in called for argument in branches[words].arguments for option in argument.names}
    assert options_of(text) <= known


def test_the_exit_codes_are_all_there() -> None:
    assert set(map(int, re.findall(r"^\| (\d+) \|", CI, re.MULTILINE))) == {*EXIT_CODES} - {2, 130}
