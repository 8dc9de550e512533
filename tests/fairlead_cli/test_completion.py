"""What the shells themselves offer with the scripts of `fairlead completion`."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_cli.parser.command_table import COMMANDS, NOUNS
from tests.servers.parts import MissingPartError, skip_or_fail

Fairlead = Callable[..., tuple[int, str, str]]

_ASK_BASH = """
source "$1"
COMP_WORDS=(fairlead "${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_fairlead
printf '%s\\n' "${COMPREPLY[@]}"
"""
# A stand-in for what zsh offers, since its completion needs a terminal: the words that reach `compadd`.
_ASK_ZSH = """
compdef() { }
compadd() { shift; print -l -- "$@" }
_files() { print files }
source "$1"
words=(fairlead "${@:2}")
CURRENT=$#words
_fairlead
"""
_ASK_FISH = "source $argv[1]; complete -C (string join ' ' -- fairlead $argv[2..-1])"
CASES = [
    pytest.param(["roll"], {"rollouts"}, id="a command's first letters"),
    pytest.param(["models", "pu"], {"push", "push-many", "pull"}, id="verbs of a noun"),
    pytest.param(["alias", ""], {"delete", "protect", "set", "unprotect"}, id="all verbs of a noun"),
    pytest.param(["rollouts", "start", "digits", "--po"], {"--policy"}, id="an option of a command"),
    pytest.param(["services", "list", "--output", "j"], {"json"}, id="a value of an option"),
    pytest.param(["services", "list", "-o", ""], {"table", "json"}, id="all values of an option"),
    pytest.param(["completion", ""], {"bash", "fish", "zsh"}, id="a positional argument's values"),
]


def ask(fairlead: Fairlead, folder: Path, shell: str, question: str, words: list[str]) -> set[str]:
    """Return what the shell offers for the last of the words."""
    program = shutil.which(shell)
    if program is None:
        skip_or_fail(MissingPartError(f"{shell} is not installed; `make deps` installs the Debian package {shell}"))
    code, script, _ = fairlead("completion", shell)
    assert code == 0
    (folder / "script").write_text(script)
    flags = {"bash": ["--norc", "-c", question, "bash"], "zsh": ["-f", "-c", question, "zsh"], "fish": ["-c", question]}
    asked = subprocess.run(
        [program, *flags[shell], "./script", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert asked.stderr == ""
    return {line.split("\t")[0] for line in asked.stdout.splitlines() if line}


@pytest.mark.parametrize(("words", "offered"), CASES)
def test_bash_offers_what_may_follow(fairlead: Fairlead, at_home: Path, words: list[str], offered: set[str]) -> None:
    assert ask(fairlead, at_home, "bash", _ASK_BASH, words) == offered


def test_bash_offers_every_command(fairlead: Fairlead, at_home: Path) -> None:
    assert ask(fairlead, at_home, "bash", _ASK_BASH, [""]) == {command.words.split()[0] for command in COMMANDS}
    for noun in NOUNS:
        verbs = {command.words.split()[1] for command in COMMANDS if command.words.startswith(f"{noun} ")}
        assert ask(fairlead, at_home, "bash", _ASK_BASH, [noun, ""]) == verbs


def test_bash_leaves_the_rest_to_files(fairlead: Fairlead, at_home: Path) -> None:
    assert ask(fairlead, at_home, "bash", _ASK_BASH, ["models", "push", ""]) == set()
    assert ask(fairlead, at_home, "bash", _ASK_BASH, ["services", "apply", "-f", ""]) == set()


@pytest.mark.parametrize(("words", "offered"), CASES)
def test_zsh_offers_what_may_follow(fairlead: Fairlead, at_home: Path, words: list[str], offered: set[str]) -> None:
    # zsh itself picks by the letters that are there.
    found = ask(fairlead, at_home, "zsh", _ASK_ZSH, words)
    assert {word for word in found if word.startswith(words[-1])} == offered


@pytest.mark.parametrize(("words", "offered"), CASES)
def test_fish_offers_what_may_follow(fairlead: Fairlead, at_home: Path, words: list[str], offered: set[str]) -> None:
    assert ask(fairlead, at_home, "fish", _ASK_FISH, words) == offered
