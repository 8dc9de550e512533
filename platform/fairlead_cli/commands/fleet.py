"""`fairlead fleet`: services whose pods are behind, and upgrades of them in waves."""

import argparse
from collections.abc import Mapping
from typing import Any

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.output import render


def _counts(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {state}" for state, count in row["services"].items() if count)


_BEHIND: render.Columns = {
    "service": lambda row: f"{row['namespace']}/{row['name']}",
    "cluster": "cluster",
    "revision": "revision",
    "a new revision gets": "template_changes",
}
_UPGRADES: render.Columns = {
    "upgrade": "id",
    "phase": "phase",
    "services": _counts,
    "started by": "created_by",
    "started": "created_at",
    "message": "message",
}
_FACTS: render.Columns = {
    **_UPGRADES,
    "cluster": "cluster",
    "namespace": "namespace",
    "waves": lambda row: f"one service, then {row['percent']} % each, at most {row['at_once']} at once",
    "ended": "ended_at",
}
_SERVICES: render.Columns = {
    "service": lambda row: f"{row['namespace']}/{row['name']}",
    "wave": "wave",
    "state": "state",
    "rollout": "rollout",
    "message": lambda row: row["message"] or row["changes"],
}


def where_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cluster", default="", metavar="NAME", help="only services of this cluster")
    parser.add_argument("--namespace", default="", metavar="NAMESPACE", help="only services of this namespace")


def list_behind(call: Call) -> None:
    """Lists the services that keep pods of an earlier release, runtime image or cluster file."""
    call.show_list(call.client.all(path("fleet", "services"), filters=_where(call.options)), _BEHIND)


def upgrade_arguments(parser: argparse.ArgumentParser) -> None:
    where_arguments(parser)
    parser.add_argument(
        "--percent", type=int, metavar="PERCENT", help="share of the services in each wave after the first (25)"
    )
    parser.add_argument("--at-once", type=int, metavar="SERVICES", help="most services upgraded at the same time (5)")


def start_upgrade(call: Call) -> None:
    """Upgrades the services that are behind in waves, each by a new revision through its own rollout policy."""
    options = call.options
    numbers = {"percent": options.percent, "at_once": options.at_once}
    asked = {**_where(options), **{name: value for name, value in numbers.items() if value is not None}}
    call.show(call.client.post(path("fleet", "upgrades"), asked), _FACTS)


def list_upgrades(call: Call) -> None:
    """Lists the upgrades of the fleet, newest first."""
    call.show_list(call.client.all(path("fleet", "upgrades")), _UPGRADES)


def upgrade_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=int, metavar="UPGRADE", help="number of the upgrade")


def show_upgrade(call: Call) -> None:
    """Shows an upgrade with the state of each of its services."""
    upgrade = call.client.get(_path(call))
    services = call.client.all(_path(call, "services"))
    if call.as_json:
        call.show({**upgrade, "members": list(services)}, _FACTS)
        return
    call.show(upgrade, _FACTS)
    print()
    call.show_list(services, _SERVICES)


def pause_upgrade(call: Call) -> None:
    """Pauses an upgrade: no further service starts, rollouts in progress go on."""
    _move(call, "pause")


def resume_upgrade(call: Call) -> None:
    """Resumes a paused upgrade, without the services that failed."""
    _move(call, "resume")


def cancel_upgrade(call: Call) -> None:
    """Cancels an upgrade: services that wait keep their pods, rollouts in progress go on."""
    _move(call, "cancel")


def _move(call: Call, verb: str) -> None:
    call.show(call.client.post(_path(call, verb)), _FACTS)


def _path(call: Call, *further: str) -> str:
    return path("fleet", "upgrades", str(call.options.id), *further)


def _where(options: argparse.Namespace) -> dict[str, Any]:
    asked = {"cluster": options.cluster, "namespace": options.namespace}
    return {name: value for name, value in asked.items() if value}
