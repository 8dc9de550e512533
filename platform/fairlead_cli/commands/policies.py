"""`fairlead policies`: rollout policies."""

import argparse
from collections.abc import Mapping
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.commands.rollout_view import portion
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.files.apply_file import apply_file, file_arguments
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "name": "name",
    "strategy": "strategy",
    "steps": lambda row: ", ".join(_given(step, row["strategy"]) for step in row["steps"]),
    "undecided": "onInconclusive",
    "then": lambda row: row.get("then") or "promote",
}


def list_policies(call: Call) -> None:
    """Lists the rollout policies."""
    call.show_list(call.client.all("policies"), _COLUMNS)


def name_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the policy")


def show_policy(call: Call) -> None:
    """Shows one rollout policy with its steps."""
    policy = call.client.get(path("policies", call.options.name))
    call.show(policy, _COLUMNS)
    if not call.as_json:
        print()
        columns: render.Columns = {
            "gets": lambda row: _given(row, policy["strategy"]),
            "hold": "hold",
            "pause": "pause",
            "analysis": lambda row: _conditions(row.get("analysis")),
        }
        call.show_list(policy["steps"], columns)


def delete_policy(call: Call) -> None:
    """Deletes a rollout policy that no service names."""
    call.client.delete(path("policies", call.options.name))
    call.done(f"deleted policy {call.options.name}", deleted=call.options.name)


def apply_arguments(parser: argparse.ArgumentParser) -> None:
    file_arguments(parser)


def apply_policy(call: Call) -> None:
    """Creates policies, or changes them for future rollouts; prints the differences first."""
    apply_file(call, lambda document: _where(call, document), _COLUMNS)


def _where(call: Call, document: Json) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise CliError(f"{call.options.file} names no policy; expected a field `name`")
    return path("policies", name)


def _given(step: Mapping[str, Any], strategy: str) -> str:
    """Return what a step of a policy file gives; a shadow's weight is what it copies."""
    return portion({"mirror": step["weight"]} if strategy == "shadow" else step)


def _conditions(analysis: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in analysis.items() if value is not None) if analysis else "-"
