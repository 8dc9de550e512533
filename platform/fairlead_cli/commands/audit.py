"""`fairlead audit`: who changed what, and whether the log of it is whole."""

import argparse
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairlead_cli.context import Call, count
from fairlead_cli.errors import CliError
from fairlead_cli.files import difference
from fairlead_cli.files.audit_log import BrokenLogError, verify_lines
from fairlead_cli.output import render
from fairlead_cli.output.progress import Reporter

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def list_arguments(parser: argparse.ArgumentParser) -> None:
    when = "start of the period: 2026-01-31T12:00:00Z, or how long ago: 90m, 12h, 7d"
    parser.add_argument("--since", type=moment, metavar="WHEN", help=when)
    parser.add_argument("--until", type=moment, metavar="WHEN", help="end of the period, exclusive; same format")
    parser.add_argument("--object", metavar="PATH", help="changed object, such as services/default/digits")
    parser.add_argument(
        "--under", metavar="PATH", help="changed object and all objects under it, such as models/digits"
    )
    parser.add_argument("--person", metavar="USER", help="user who made the change, with any token")
    parser.add_argument("--action", metavar="ACTION", help="type of change, such as policy.apply")
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="number of newest entries (50)")


def list_entries(call: Call) -> None:
    """Lists changes, newest first, with the changed fields; for administrators of the installation."""
    options = call.options
    wanted = {
        "since": options.since,
        "until": options.until,
        "target": options.object,
        "under": options.under,
        "user": options.person,
        "action": options.action,
    }
    query = {name: value for name, value in wanted.items() if value is not None}
    columns: render.Columns = {
        "at": "at",
        "who": "actor",
        "action": "action",
        "object": "target",
        "changed": lambda row: "; ".join(changes(row)),
    }
    call.show_list(call.client.all("audit", options.limit, query), columns)


def export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="new file for the log, as lines of JSON")


def export(call: Call) -> None:
    """Writes the whole audit log with its hash chain to a file, which `audit verify FILE` verifies."""
    target: Path = call.options.file
    if target.exists():
        raise CliError(f"{target} is there already; name a new file")
    size = 0

    def came(count: int, _: int | None) -> None:
        nonlocal size
        size += count

    try:
        with tempfile.TemporaryDirectory(prefix=".fairlead-audit-", dir=target.parent) as scratch:
            part = Path(scratch) / "log"
            with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                call.client.download("audit/export", file, came)
            part.rename(target)
    except OSError as error:
        raise CliError(f"{target} cannot be written: {error.strerror}") from error
    call.done(f"the audit log is in {render.clean(target)}, {render.size(size)}", file=str(target), bytes=size)


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="exported log; without it the server verifies its own"
    )
    parser.add_argument(
        "--public-key",
        action="append",
        default=[],
        metavar="KEY",
        help="public key of the installation that signed the file, in hexadecimal; may be given more than once "
        "(the keys in the file, which do not show that the file was signed again by another key)",
    )


def verify(call: Call) -> None:
    """Verifies that no entry of the audit log was changed, removed, inserted or moved; exit code 1 if one was."""
    if call.options.file is not None:
        _verify_file(call, call.options.file)
    elif call.options.public_key:
        raise CliError("--public-key is for an exported file; name it, or leave the option out")
    else:
        _verify_server(call)


def _verify_server(call: Call) -> None:
    reporter, checked, found = Reporter(call.note), 0, call.client.get("audit/verification")
    while True:
        checked += found["checked"]
        if found["broken"]:
            raise CliError(f"the audit log is broken: {found['broken']}")
        if found["complete"]:
            break
        reporter.see(f"{checked} entries checked", "checking")
        found = call.client.get(f"audit/verification?after={found['position']}")
    sentence = f"{checked} entries are whole, {found['pruned']} pruned, {found['waiting']} not chained yet"
    kept = {name: found[name] for name in ("pruned", "waiting", "protected", "checkpoint", "public_keys")}
    call.done(sentence, checked=checked, **kept)


def _verify_file(call: Call, file: Path) -> None:
    reporter = Reporter(call.note)

    def progress(count: int) -> None:
        reporter.see(f"{count} entries checked", "checking")

    try:
        with file.open("rb") as lines:
            found = verify_lines(lines, trusted=call.options.public_key, progress=progress)
    except BrokenLogError as error:
        raise CliError(f"the audit log is broken: {error}") from error
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}") from error
    sentence = f"{found.checked} entries are whole, {found.pruned} pruned, exported at {render.clean(found.at)}"
    if not call.options.public_key:
        sentence += (
            f"; signed by the file's own key {render.clean(found.public_keys)}: compare it, or give --public-key"
        )
    call.done(sentence, **asdict(found))


def changes(entry: Mapping[str, Any]) -> list[str]:
    """Return the fields that an entry says were changed, made or gone."""
    return [line.strip() for line in difference.lines(entry["before"] or None, entry["after"] or None)]


def moment(text: str) -> str:
    """Return an ISO moment for `2026-01-31T12:00:00Z` or for how long ago it was."""
    if ago := _AGO.fullmatch(text):
        return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).isoformat()
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment; expected one such as 2026-01-31T12:00:00Z, or how long ago, such as 12h"
        ) from None
