"""A command line's commands and arguments as lines of text, without the words of its help."""

import argparse
from collections.abc import Collection, Iterator


def described(parser: argparse.ArgumentParser, words: str, leave_out: Collection[str] = ()) -> Iterator[str]:
    """Yield a line for each command and each of its arguments; `leave_out` are destinations of arguments."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from described(child, f"{words} {word}", leave_out)
        elif not isinstance(action, argparse._HelpAction | argparse._VersionAction) and action.dest not in leave_out:
            yield f"{words}: {_argument(action)}"


def _argument(action: argparse.Action) -> str:
    parts = [", ".join(action.option_strings) or str(action.metavar or action.dest)]
    if action.nargs is not None:
        parts.append(f"nargs={action.nargs}")
    if action.choices is not None:
        parts.append(f"choices={'|'.join(map(str, action.choices))}")
    if action.option_strings and action.required:
        parts.append("required")
    if action.default not in (None, argparse.SUPPRESS):
        parts.append(f"default={action.default!s}")
    return " ".join(parts)
