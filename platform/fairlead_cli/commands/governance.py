"""Governance: who may move an alias, and whether a version may be served: `alias protect`, `versions approve` etc."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.commands import models
from fairlead_cli.context import Call
from fairlead_cli.output import render

_KEPT: render.Columns = {
    "model": "name",
    "approval": "requires_approval",
    "protected": "protected_aliases",
    "team": "team",
    "owner": "owner",
    "deleted": "kept_at",
}


def protect(call: Call) -> None:
    """Restricts setting, moving and deleting an alias to admins of the owning team."""
    options = call.options
    call.client.put(path("models", options.name, "aliases", options.alias, "protection"), {})
    call.done(f"only admins move {options.name}@{options.alias} now", model=options.name, protected=options.alias)


def unprotect(call: Call) -> None:
    """Allows every deployer of the owning team to set, move and delete an alias again."""
    options = call.options
    call.client.delete(path("models", options.name, "aliases", options.alias, "protection"))
    call.done(f"deployers move {options.name}@{options.alias} again", model=options.name, unprotected=options.alias)


def rule_arguments(parser: argparse.ArgumentParser) -> None:
    models.name_argument(parser)
    parser.add_argument("required", choices=["yes", "no"], help="whether services require approved versions")


def require_approval(call: Call) -> None:
    """Restricts services to approved versions of a model from now on, or allows all versions again."""
    options = call.options
    changed = call.client.put(
        path("models", options.name, "approval"), {"requires_approval": options.required == "yes"}
    )
    rule = "only approved versions come" if changed["requires_approval"] else "versions come without an approval"
    call.done(f"model {options.name}: {rule} into services", **changed)


def list_kept_rules(call: Call) -> None:
    """Lists the rules that deleted models left, with which the next models of their names begin."""
    call.show_list(call.client.all("kept-rules"), _KEPT)


def remove_kept_rules(call: Call) -> None:
    """Removes the rules that a deleted model left."""
    name = call.options.name
    call.client.delete(path("models", name, "kept-rules"))
    call.done(f"the next model {name} begins without rules", removed=name)


def approve_arguments(parser: argparse.ArgumentParser) -> None:
    models.version_arguments(parser)
    parser.add_argument("--comment", default="", metavar="TEXT", help="what you reviewed, for the record")


def decline_arguments(parser: argparse.ArgumentParser) -> None:
    models.version_arguments(parser)
    parser.add_argument("--comment", required=True, metavar="TEXT", help="reason, for the record")


def approve(call: Call) -> None:
    """Approves a version that another user registered."""
    _decide(call, "approved")


def decline(call: Call) -> None:
    """Declines a version, with a reason."""
    _decide(call, "declined")


def _decide(call: Call, state: str) -> None:
    options = call.options
    address = path("models", options.name, "versions", options.version, "approval")
    changed = call.client.put(address, {"state": state, "comment": options.comment})
    call.done(render.clean(f"{options.name} version {options.version} is {state}"), **changed)
