"""`fairlead audit`: who changed what."""

import argparse
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlead_cli.context import Call, count
from fairlead_cli.files import difference
from fairlead_cli.output import render

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
