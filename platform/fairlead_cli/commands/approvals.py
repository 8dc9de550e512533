"""`fairlead rollouts approve`, `withdraw` and `reject`: approvals of gates."""

import argparse

from fairlead_cli.client import Json, path
from fairlead_cli.commands import rollout_view, rollouts
from fairlead_cli.context import Call
from fairlead_cli.output import render


def approve_arguments(parser: argparse.ArgumentParser) -> None:
    rollouts.which_argument(parser)
    parser.add_argument("--comment", default="", metavar="TEXT", help="what you reviewed, for the record")


def reject_arguments(parser: argparse.ArgumentParser) -> None:
    rollouts.which_argument(parser)
    parser.add_argument("--comment", required=True, metavar="TEXT", help="reason, for the record")


def approve(call: Call) -> None:
    """Approves that a waiting rollout continues; the approval covers exactly its present state."""
    rollout = rollouts.find(call)
    _show(call, rollout, call.client.post(_address(rollout), {"comment": call.options.comment}))


def withdraw(call: Call) -> None:
    """Withdraws your approval while the rollout waits."""
    rollout = rollouts.find(call)
    call.client.delete(_address(rollout))
    _show(call, rollout, call.client.get(_address(rollout)))


def reject(call: Call) -> None:
    """Aborts a rollout that waits for approvals, with a reason."""
    body = {"comment": call.options.comment}
    rollouts.show(call, call.client.post(path("rollouts", rollouts.find(call)["id"], "reject"), body))


def _address(rollout: Json) -> str:
    return path("rollouts", rollout["id"], "approvals")


def _show(call: Call, rollout: Json, approvals: Json) -> None:
    if call.as_json:
        return call.show(approvals, {})
    print(f"rollout {rollout['id']} of {rollout['service']}: {rollout_view.asked(approvals)}")
    if approvals["given"]:
        print("\n" + render.table(approvals["given"], rollout_view.APPROVALS))
    return None
