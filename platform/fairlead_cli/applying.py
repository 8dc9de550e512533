"""What `services apply` and `policies apply` have in common: ask what would happen, tell it, then do it."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fairlead_cli import difference, render
from fairlead_cli.call import Call
from fairlead_cli.client import Json
from fairlead_cli.documents import read_documents


def file_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", required=True, type=Path, help="file of one or more documents (YAML or JSON); - for stdin"
    )
    parser.add_argument("--dry-run", action="store_true", help="only check the file and print what would change")


def apply_file(
    call: Call, where: Callable[[Json], str], columns: render.Columns, ready: Callable[[Json], Json] = lambda made: made
) -> None:
    """Apply the documents of the call's file, in their order, once all of them were found right.

    Args:
        where: returns the API path of a document.
        ready: returns what was applied once it is as far as was asked for.
    """
    documents = [(where(document), document) for document in read_documents(call.options.file)]
    plans = []
    for path, document in documents:
        plan = call.client.put(f"{path}?dry_run=true", document)
        plans.append({"path": path, **plan})
        _tell(call, path, plan)
    if call.options.dry_run:
        if call.as_json:
            print(render.as_json(plans if len(plans) > 1 else plans[0]))
        return
    applied = [call.client.put(path, document) for path, document in documents]
    made = [ready(answer) for answer in applied]
    if call.as_json:
        print(render.as_json(made if len(made) > 1 else made[0]))
    else:
        print("\n\n".join(render.facts(row, columns) for row in made))


def _tell(call: Call, path: str, plan: Json) -> None:
    """Print a plan: as the answer of a dry run, else beside the answer."""
    told = [f"{path}: {plan['outcome']}, {plan['message']}"]
    if plan["outcome"] != "unchanged":
        told += [f"  {line}" for line in difference.lines(plan["before"], plan["after"])]
    for line in told:
        if call.options.dry_run and not call.as_json:
            print("".join(character if character.isprintable() else "?" for character in line))
        else:
            call.note(line)
