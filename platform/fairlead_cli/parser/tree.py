"""Command tree: the command line as values, read from its parser, for completion and the reference page."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """An option or a positional argument; `names` is empty for a positional one."""

    names: tuple[str, ...]
    value: str
    help: str
    choices: tuple[str, ...]
    takes_value: bool
    required: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """One place of the command line: `fairlead`, a noun, or a command with its arguments."""

    words: tuple[str, ...]
    help: str
    children: tuple["Branch", ...]
    arguments: tuple[Argument, ...]


def read(parser: argparse.ArgumentParser, words: tuple[str, ...] = (), help_text: str = "") -> Branch:
    """Return the parser as a tree of branches, without `--help`."""
    children: list[Branch] = []
    arguments: list[Argument] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            children += [read(child, (*words, word), helps[word]) for word, child in action.choices.items()]
        elif not isinstance(action, argparse._HelpAction | argparse._VersionAction):
            arguments.append(_argument(action))
    return Branch(words, help_text, tuple(children), tuple(arguments))


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    value = action.metavar if isinstance(action.metavar, str) else "|".join(choices) or action.dest.upper()
    return Argument(
        names=tuple(action.option_strings),
        value=value,
        help=action.help or "",
        choices=choices,
        takes_value=action.nargs != 0,
        required=action.required,
    )


def walk(branch: Branch) -> list[Branch]:
    """Return the branch and all below it, depth first."""
    return [branch, *(below for child in branch.children for below in walk(child))]
