"""Apply command shared by `services apply`, `policies apply` and `clusters apply`: dry run, print the plan, apply."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fairlead_cli.client import Json
from fairlead_cli.context import Call
from fairlead_cli.errors import ApiError, CliError
from fairlead_cli.files import difference
from fairlead_cli.files.documents import read_documents
from fairlead_cli.output import contract_changes, render


def file_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", required=True, type=Path, help="file of one or more documents (YAML or JSON); - for stdin"
    )
    parser.add_argument("--dry-run", action="store_true", help="only checks the file and prints what would change")


def apply_file(
    call: Call,
    where: Callable[[Json], str],
    columns: render.Columns,
    ready: Callable[[Json], Json] = lambda made: made,
    *,
    query: str = "",
    prepared: Callable[[Json], Json] = lambda document: document,
) -> None:
    """Apply the documents of the call's file, in their order, once all of them are valid.

    Args:
        where: returns the API path of a document.
        ready: returns the applied object once it is ready as far as the options require.
        prepared: returns a document as it is to be sent.
        query: query string of each request, such as `a=1&b=2`.
    """
    documents = [(where(document), prepared(document)) for document in read_documents(call.options.file)]
    several = len(documents) > 1
    plans = [_plan(call, path, document, query=query, one_of_several=several) for path, document in documents]
    for plan in plans:
        _print_plan(call, plan)
    if call.options.dry_run:
        if call.as_json:
            print(render.as_json(plans if len(plans) > 1 else plans[0]))
        return
    applied = [call.client.put(f"{path}?{query}" if query else path, document) for path, document in documents]
    made = [ready(answer) for answer in applied]
    if call.as_json:
        print(render.as_json(made if len(made) > 1 else made[0]))
    else:
        print("\n\n".join(render.facts(row, columns) for row in made))


def _plan(call: Call, path: str, document: Json, *, query: str, one_of_several: bool) -> Json:
    """Return the plan of applying the document, with its path; a refusal names it where it is one of several."""
    try:
        return {"path": path, **call.client.put(f"{path}?dry_run=true{'&' if query else ''}{query}", document)}
    except ApiError as error:
        if not one_of_several:
            raise
        message, *details = str(error).splitlines()
        raise CliError("\n".join([f"{path}: {message}; nothing of the file was applied", *details])) from error


def _print_plan(call: Call, plan: Json) -> None:
    """Print a plan: as the answer of a dry run, else beside the answer."""
    lines = [f"{plan['path']}: {plan['outcome']}, {plan['message']}"]
    lines += [f"  {line}" for line in contract_changes.lines(plan.get("contract"))]
    if plan["outcome"] != "unchanged":
        lines += [f"  {line}" for line in difference.lines(plan["before"], plan["after"])]
    lines += [f"  {line}" for line in plan.get("patched", "").splitlines()]
    if plan.get("untried"):
        lines.append(f"  the patches were not tried on the cluster: {plan['untried']}")
    lines += [f"  warning: {warning}" for warning in plan.get("warnings", ())]
    for line in lines:
        if call.options.dry_run and not call.as_json:
            print("".join(character if character.isprintable() else "?" for character in line))
        else:
            call.note(line)
