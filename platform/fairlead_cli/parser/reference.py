"""CLI reference generator for docs/reference/cli.md: `python -m fairlead_cli.parser.reference` prints the page."""

from fairlead_cli.__main__ import build_parser
from fairlead_cli.errors import EXIT_CODES
from fairlead_cli.parser import tree

_HEAD = """\
# Command line

`python -m fairlead_cli.parser.reference` generates this page from the commands; a test keeps it current.
`fairlead COMMAND --help` prints the same.

All commands except `up`, `demo` and `completion` take `-o, --output table|json`: with `json`, standard output is one
document and nothing else. Every command that connects to the control plane takes `--url`. While a command waits, it
shows its progress on a terminal, and elsewhere writes a line to standard error for each change, and for new figures
every half minute. Beyond a [rate limit](limits.md#requests-to-the-control-plane) it waits as long as the server says, a
minute for each request at most, and writes one line to standard error. The URL and the API token come from
`FAIRLEAD_URL` and `FAIRLEAD_TOKEN`, else from `fairlead up` in this folder or one above it (`FAIRLEAD_HOME`,
`.fairlead`), else from `fairlead login`.

Shell completion: `source <(fairlead completion bash)` (or `zsh`), `fairlead completion fish | source`.
"""
_COMMON = {"--url", "--output"}


def page() -> str:
    """Return the page as Markdown."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    parts = [_HEAD, f"## Exit codes\n| code | meaning |\n| --- | --- |\n{codes}", "## Commands"]
    commands = [branch for branch in tree.walk(tree.read(build_parser())) if not branch.children]
    return "\n".join([*parts, *map(_section, commands)])


def _section(command: tree.Branch) -> str:
    arguments = [argument for argument in command.arguments if not _COMMON.intersection(argument.names)]
    rows = "".join(f"| `{_shown(argument)}` | {_cell(argument)} |\n" for argument in arguments)
    table = f"\n| argument | meaning |\n| --- | --- |\n{rows}" if rows else ""
    return f"### fairlead {' '.join(command.words)}\n{' '.join(command.help.split())}\n{table}"


def _shown(argument: tree.Argument) -> str:
    # A bar would end the cell; Markdown takes it escaped, in code too.
    value = f" {argument.value}" if argument.takes_value else ""
    return ((", ".join(argument.names) + value) if argument.names else argument.value).replace("|", "\\|")


def _cell(argument: tree.Argument) -> str:
    needed = " (required)" if argument.names and argument.required else ""
    return " ".join(argument.help.replace("|", "\\|").split()) + needed


if __name__ == "__main__":
    print(page(), end="")
