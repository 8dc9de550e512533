"""Entry point of the `fairlead` command: parses the command line, runs one command, turns errors into exit codes."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from fairlead_cli.context import Call
from fairlead_cli.errors import EXIT_CODES, CliError
from fairlead_cli.output import render
from fairlead_cli.parser.command_table import COMMANDS, NOUNS, Command

_EPILOG = """\
environment:
  FAIRLEAD_URL, FAIRLEAD_TOKEN   control plane and API token (those of `fairlead up` in this folder or one above
                                 it, else those of `fairlead login`)
  FAIRLEAD_HOME                  folder of the embedded platform (.fairlead here, else the nearest one above)

exit codes:
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser for all of `COMMANDS`; the parsed options carry the command as `command`."""
    parser = argparse.ArgumentParser(
        prog="fairlead",
        description="Registers models, serves them, and rolls out new versions safely.",
        epilog=_EPILOG + "".join(f"  {code:<5}{meaning}\n" for code, meaning in EXIT_CODES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairlead {version('fairlead')}")
    top = parser.add_subparsers(title="commands", metavar="COMMAND")
    # Shell completion is generated from the whole; `unfinished` is where the command line ended without a command.
    parser.set_defaults(parser=parser, command=None, unfinished=parser)
    nouns: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    for command in COMMANDS:
        noun, _, verb = command.words.partition(" ")
        if verb and noun not in nouns:
            group = top.add_parser(noun, help=NOUNS[noun], description=f"{NOUNS[noun][0].upper()}{NOUNS[noun][1:]}.")
            group.set_defaults(unfinished=group)
            nouns[noun] = group.add_subparsers(title="commands", metavar="COMMAND")
        _add(nouns[noun] if verb else top, verb or noun, command)
    return parser


def _add(parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", word: str, command: Command) -> None:
    parser = parsers.add_parser(word, help=command.help, description=command.help)
    command.arguments(parser)
    if not command.local:
        parser.add_argument("--url", help="URL of the control plane (FAIRLEAD_URL)")
    if command.answers:
        parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="output format (table)")
    parser.set_defaults(command=command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = build_parser().parse_args(arguments)
    if options.command is None:
        options.unfinished.print_help(sys.stderr)
        return 2
    try:
        with Call(options) as call:
            options.command.run(call)
        sys.stdout.flush()
    except CliError as error:
        for line in str(error).splitlines():
            print(f"{render.clean(line)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
