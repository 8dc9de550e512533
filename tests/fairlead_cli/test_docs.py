"""Every `fairlead` command line in the docs is one that the command takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_cli.__main__ import build_parser
from fairlead_cli.parser import tree

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^( *)```[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"(?:^|(?<=[\s(/]))(?<!--namespace )fairlead (?=[a-z])")
_ENDS = {"|", "||", "&&", "&", ";", ")", ">", ">>", "<"}


def calls(block: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of `fairlead` in a code block, without what the shell does around it."""
    text = block.replace("\\\n", " ")
    # What another program puts in stands for one word, and so does a variable.
    text = re.sub(r"\$\((?!fairlead )[^()]*\)|\$\{?\w+\}?", "1", text)
    for line in text.splitlines():
        if line.lstrip(" $").startswith("helm "):
            continue  # whose release is called fairlead
        for found in _CALL.finditer(line):
            words = shlex.shlex(line[found.end() :], posix=True, punctuation_chars="|&;()<>")
            words.whitespace_split = True
            words.commenters = "#"
            arguments: list[str] = []
            for word in words:
                if word in _ENDS:
                    break
                arguments.append(word)
            yield arguments


def examples() -> list[object]:
    return [
        pytest.param(arguments, id=f"{page.relative_to(ROOT)}: {' '.join(arguments)}")
        for page in PAGES
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8"))
        for arguments in calls(block[2])
    ]


def test_there_are_examples() -> None:
    assert len(examples()) > 25


@pytest.mark.parametrize("arguments", examples())
def test_a_command_line_of_a_code_block_is_taken(arguments: list[str]) -> None:
    build_parser().parse_args(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_in_the_text_is_there_with_its_options(page: Path) -> None:
    branches = {branch.words: branch for branch in tree.walk(tree.read(build_parser()))}
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for span in re.findall(r"`fairlead ([a-z-][^`]*)`", text):
        words = tuple(re.match(r"(?:[a-z][a-z-]*\s*)*", span)[0].split())  # type: ignore[index]  # it may match nothing
        branch = next((branches[words[:count]] for count in (2, 1) if words[:count] in branches), None)
        assert branch is not None, f"fairlead {span}"
        known = {name for argument in branch.arguments for name in argument.names} | {"--help"}
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", span)) <= known, f"fairlead {span}"
