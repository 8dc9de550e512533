"""Governance: who may move an alias, and whether a version may be served: `alias protect`, `versions approve` etc."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.commands import models
from fairlead_cli.context import Call
from fairlead_cli.output import render


def protect(call: Call) -> None:
    """Let only admins of the owning team set, move and delete an alias."""
    options = call.options
    call.client.put(path("models", options.name, "aliases", options.alias, "protection"), {})
    call.done(f"only admins move {options.name}@{options.alias} now", model=options.name, protected=options.alias)


def unprotect(call: Call) -> None:
    """Let every deployer of the owning team set, move and delete an alias again."""
    options = call.options
    call.client.delete(path("models", options.name, "aliases", options.alias, "protection"))
    call.done(f"deployers move {options.name}@{options.alias} again", model=options.name, unprotected=options.alias)


def rule_arguments(parser: argparse.ArgumentParser) -> None:
    models.name_argument(parser)
    parser.add_argument("required", choices=["yes", "no"], help="whether versions need an approval")


def require_approval(call: Call) -> None:
    """Let only approved versions of a model into services from now on, or all of them again."""
    options = call.options
    changed = call.client.put(
        path("models", options.name, "approval"), {"requires_approval": options.required == "yes"}
    )
    rule = "only approved versions come" if changed["requires_approval"] else "versions come without an approval"
    call.done(f"model {options.name}: {rule} into services", **changed)


def approve_arguments(parser: argparse.ArgumentParser) -> None:
    models.version_arguments(parser)
    parser.add_argument("--comment", default="", metavar="TEXT", help="what you looked at, for the record")


def decline_arguments(parser: argparse.ArgumentParser) -> None:
    models.version_arguments(parser)
    parser.add_argument("--comment", required=True, metavar="TEXT", help="why")


def approve(call: Call) -> None:
    """Approve a version that somebody else registered."""
    _decide(call, "approved")


def decline(call: Call) -> None:
    """Decline a version, and say why."""
    _decide(call, "declined")


def _decide(call: Call, state: str) -> None:
    options = call.options
    address = path("models", options.name, "versions", options.version, "approval")
    changed = call.client.put(address, {"state": state, "comment": options.comment})
    call.done(render.clean(f"{options.name} version {options.version} is {state}"), **changed)
