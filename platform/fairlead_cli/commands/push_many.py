"""`fairlead models push-many`: registers each model of a folder, several at a time over one client."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fairlead_cli.client import Client, Json, path
from fairlead_cli.commands import version_metadata
from fairlead_cli.commands.models import wait_checked
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError, EndedBadly, TimedOut, Unreachable
from fairlead_cli.files.upload_sources import source_of
from fairlead_cli.output import render

_AT_ONCE = 4
_COLUMNS: render.Columns = {
    "file": "file",
    "model": "model",
    "version": "version",
    "status": "status",
    "error": "error",
}


def push_many_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="folder of models: NAME.onnx, or NAME/ in Triton's layout, is the model NAME; hidden entries are left out",
    )
    version_metadata.push_arguments(parser)
    parser.add_argument("--wait", action="store_true", help="waits until none is PENDING; one REJECTED exits with 3")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600)")


def push_many(call: Call) -> None:
    """Registers each file or folder of a folder as the next version of the model of its name.

    Identical files return the existing version, so the same command goes on where an earlier one ended.
    """
    options = call.options
    models = models_in(options.folder)
    query = version_metadata.query(options)
    rows = [*_each(call, models, lambda name, file: _pushed(call.client, name, file, query), "registering")]
    if options.wait:
        registered = {row["model"]: Path(row["file"]) for row in rows if not row["error"]}
        versions = {row["model"]: row["version"] for row in rows}
        checked = _each(
            call,
            registered,
            lambda name, file: _checked(call.client, name, file, versions[name], options.timeout),
            "checking",
        )
        rows = [row for row in rows if row["error"]] + [*checked]
    rows.sort(key=lambda row: str(row["file"]))
    if call.as_json:
        call.show_list(rows, _COLUMNS)
    failed = [row for row in rows if row["error"]]
    rejected = sum(row["status"] == "REJECTED" for row in failed)
    if rejected:
        raise EndedBadly(f"{rejected} of {len(rows)} models were rejected and {len(failed) - rejected} failed")
    if failed:
        raise CliError(f"{len(failed)} of {len(rows)} models failed; the same command tries those again")
    if not call.as_json:
        call.done(f"{len(rows)} models are {'READY' if options.wait else 'registered'}")


def models_in(folder: Path) -> dict[str, Path]:
    """Return files and folders by the names of their models; raises CliError where two have the same, or none."""
    if not folder.is_dir():
        raise CliError(f"{folder} is no folder; give one that holds the models, each a file or a folder")
    found: dict[str, Path] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        name = entry.name if entry.is_dir() else entry.stem
        if name in found:
            raise CliError(f"{entry} and {found[name]} would both be the model {name!r}; rename one of them")
        found[name] = entry
    if not found:
        raise CliError(f"{folder} is empty; put a file or a folder there for each model")
    return found


def _each(call: Call, models: dict[str, Path], work: Callable[[str, Path], Json], what: str) -> Iterator[Json]:
    """Yield a row for each model as it comes, print its error, and show the progress."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    shown = Console(stderr=True)
    call.client  # noqa: B018 - it is connected before several threads use it
    with (
        Progress(*columns, console=shown, disable=not sys.stderr.isatty(), transient=True) as progress,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        task = progress.add_task(what, total=len(models))
        running = {pool.submit(work, name, file): name for name, file in models.items()}
        try:
            for done in as_completed(running):
                row = done.result()
                if row["error"]:
                    call.note(f"{running[done]}: {row['error']}")
                progress.advance(task)
                yield row
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _pushed(client: Client, name: str, file: Path, query: Sequence[tuple[str, str]]) -> Json:
    try:
        source = source_of(file)
        digest = hashlib.sha256()
        for piece in source.pieces():
            digest.update(piece)
        version = client.upload(path("models", name, "versions"), source, digest.hexdigest(), lambda _: None, query)
    except Unreachable:
        raise
    except (CliError, OSError) as error:
        return _row(file, name, error=str(error))
    reason = version["reason"] if version["status"] == "REJECTED" else ""
    return _row(file, name, version["number"], version["status"], reason)


def _checked(client: Client, name: str, file: Path, number: int, timeout_s: float) -> Json:
    try:
        version = wait_checked(client, name, number, timeout_s=timeout_s)
    except EndedBadly as error:
        return _row(file, name, number, "REJECTED", str(error))
    except TimedOut as error:
        return _row(file, name, number, "PENDING", str(error))
    return _row(file, name, number, version["status"])


def _row(file: Path, model: str, version: int | None = None, status: str = "", error: str = "") -> Json:
    return {"file": str(file), "model": model, "version": version, "status": status, "error": error}
