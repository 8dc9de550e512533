"""`fairlead models push URI`, `models imports` and `models stop-import`: versions imported from elsewhere."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from fairlead_cli.client import Json, path
from fairlead_cli.commands import version_metadata
from fairlead_cli.context import Call
from fairlead_cli.errors import EndedBadly
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S = 0.5


def is_uri(text: str) -> bool:
    """Return whether `models push` names files elsewhere, which the control plane downloads itself."""
    return "://" in text


def progress_of(row: Mapping[str, Any]) -> str:
    """Return how much came in, of how much where that is known."""
    done, total = render.size(row["bytes_done"]), row["bytes_total"]
    return done if total is None else f"{done} of {render.size(total)}"


COLUMNS: render.Columns = {
    "import": "id",
    "status": "status",
    "came": progress_of,
    "version": "version",
    "uri": "uri",
    "reason": "reason",
    "created": "created_at",
    "by": "created_by",
}


def request(call: Call) -> Json:
    """Ask for the import that the call's options name, and return it."""
    options = call.options
    asked: dict[str, Any] = {"uri": options.file, **version_metadata.document(options)}
    if options.sha256:
        asked["sha256"] = options.sha256
    return call.client.post(path("models", options.name, "imports"), asked)


def wait_imported(call: Call, row: Json, *, timeout_s: float) -> int:
    """Return the number of the version that the import became; EndedBadly with the reason where it failed."""
    where = path("models", row["model"], "imports", row["id"])
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(f"importing {render.clean(row['uri'])}", total=None)

        def look() -> Json:
            seen = call.client.get(where)
            progress.update(task, completed=seen["bytes_done"], total=seen["bytes_total"])
            return seen

        ended = wait_until(
            look,
            lambda seen: seen["status"] != "PENDING",
            timeout_s=timeout_s,
            every_s=_LOOK_EVERY_S,
            what=f"the end of import {row['id']} of {row['model']}",
        )
    if ended["status"] != "IMPORTED":
        raise EndedBadly(f"{row['uri']} was not imported: {ended['reason']}")
    number: int = ended["version"]
    return number


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the registered model")


def list_imports(call: Call) -> None:
    """Lists the imports of a model, newest first: progress, resulting version, reason of a failure."""
    call.show_list(call.client.all(path("models", call.options.name, "imports")), COLUMNS)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    list_arguments(parser)
    parser.add_argument("id", type=int, metavar="IMPORT", help="number of the import")


def stop(call: Call) -> None:
    """Stops an unfinished import."""
    name, number = call.options.name, call.options.id
    call.client.delete(path("models", name, "imports", number))
    call.done(f"import {number} of {name} is stopped", model=name, stopped=number)
