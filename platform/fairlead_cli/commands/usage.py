"""`fairlead usage`: requests, rows, errors and time by caller, service and time; and commands of budgets."""

import argparse
from urllib.parse import urlencode

from fairlead_cli.client import path
from fairlead_cli.commands.keys import key_argument
from fairlead_cli.commands.services import service_argument
from fairlead_cli.commands.teams import team_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.output import render

_GROUPS = ("team", "key", "service", "revision", "day", "hour")
_FIGURES: render.Columns = {
    "requests": "requests",
    "errors": "errors",
    "rows": "rows",
    "bytes in": "bytes_in",
    "bytes out": "bytes_out",
    "model seconds": lambda row: f"{row['model_seconds']:.3f}",
    "cost": lambda row: "" if row["cost"] is None else f"{row['cost']:.4f}",
}
_BUDGET: render.Columns = {
    "month": "month",
    "requests": "used_requests",
    "most requests": "requests",
    "rows": "used_rows",
    "most rows": "rows",
    "cost": "used_cost",
    "highest cost": "cost",
    "currency": "currency",
    "enforced": "enforce",
    "used up": "used_up",
}


def usage_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--month", metavar="MONTH", help="calendar month in UTC, such as 2026-01 (the present one)")
    parser.add_argument("--team", metavar="TEAM", help="only keys of this team")
    parser.add_argument("--service", metavar="NAMESPACE/NAME", help="only this service")
    parser.add_argument("--key", metavar="NAME", help="only this key")
    parser.add_argument(
        "--by", metavar="NAMES", help=f"group by some of {', '.join(_GROUPS)}, separated by commas (team,service,key)"
    )


def usage(call: Call) -> None:
    """Shows the usage of services in a month, by keys of your teams; to administrators of the installation, all."""
    asked = {name: getattr(call.options, name) for name in ("month", "team", "service", "key", "by")}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    found = call.client.get(f"usage?{query}" if query else "usage")
    if call.as_json:
        return call.show(found, {})
    lines = found["lines"]
    groups: render.Columns = {name: name for name in _GROUPS if lines and name in lines[0]}
    call.show_list(lines, {**groups, **_FIGURES})
    return None


def team_budget_arguments(parser: argparse.ArgumentParser) -> None:
    team_argument(parser)
    _limit_arguments(parser)


def team_budget(call: Call) -> None:
    """Shows the budget of a team and what its keys used this month; with options sets it, as administrators may.

    An enforced budget is a quota: once a limit is used up the gateway refuses the team's keys until the month ends.
    """
    _budget(call, path("teams", call.options.team, "budget"))


def key_budget_arguments(parser: argparse.ArgumentParser) -> None:
    key_argument(parser)
    _limit_arguments(parser)


def key_budget(call: Call) -> None:
    """Shows the budget of a key and what it used this month; with options sets it, as admins of its team may.

    An enforced budget is a quota: once a limit is used up the gateway refuses the key until the month ends.
    """
    _budget(call, path("keys", call.options.name, "budget"))


def service_budget_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    _limit_arguments(parser)


def service_budget(call: Call) -> None:
    """Shows the budget of a service and what all its callers used this month; with options sets it.

    Admins of the team that owns the namespace may set it. An enforced budget is a quota: once a limit is used up the
    gateway refuses requests to the service until the month ends.
    """
    _budget(call, path("services", *service_path(call.options.service), "budget"))


def _limit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--requests", type=_limit, metavar="NUMBER", help="most requests of a month; `none` for no limit"
    )
    parser.add_argument("--rows", type=_limit, metavar="NUMBER", help="most rows of a month; `none` for no limit")
    parser.add_argument("--cost", type=_limit, metavar="AMOUNT", help="highest cost of a month; `none` for no limit")
    parser.add_argument(
        "--enforce",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="make it a quota: refuse requests once a limit is used up",
    )


def _budget(call: Call, address: str) -> None:
    options = call.options
    asked = {"requests": options.requests, "rows": options.rows, "cost": options.cost}
    found = call.client.get(address)
    if options.enforce is not None or any(value is not None for value in asked.values()):
        wanted = {
            name: found[name] if value is None else None if value < 0 else value
            for name, value in asked.items()
            if value is not None or name in found
        }
        if options.enforce is not None:
            wanted["enforce"] = options.enforce
        found = call.client.put(address, wanted)
    call.show(found, _BUDGET)


def _limit(text: str) -> float:
    """Return a limit from the command line, -1 for `none`."""
    if text == "none":
        return -1
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e15:
        raise argparse.ArgumentTypeError(f"{text!r} is no limit; expected a number above 0, or none")
    return int(value) if value == int(value) else value
