"""`fairlead rollouts`: start, watch and decide rollouts of a service from one version to the next."""

import argparse
import sys

from rich.console import Console
from rich.live import Live

from fairlead_cli.client import Json, path
from fairlead_cli.commands import failures, rollout_plan, rollout_view
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import Aborted, CliError, EndedBadly
from fairlead_cli.output import contract_changes, render
from fairlead_cli.output.progress import Reporter
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S = 0.5
_ENDED = {"Healthy", "Degraded", "Aborted"}


def start_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="NAME or NAMESPACE/NAME")
    parser.add_argument("--version", required=True, help="target version: 2, @champion or models:/NAME/2")
    parser.add_argument("--policy", help="rollout policy (the service's own)")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only prints the planned rollout, its effects on clients, and what the analysis could find",
    )
    contract_changes.force_argument(parser)
    wait_arguments(parser)


def start(call: Call) -> None:
    """Starts a rollout; with --wait, exits with 0 only if it ends Healthy."""
    options = call.options
    body = {"version": options.version} | ({"policy": options.policy} if options.policy else {})
    body |= contract_changes.as_fields(options.force_contract)
    where = path("services", *service_path(options.service), "rollouts")
    with contract_changes.naming_the_flag():
        started = call.client.post(f"{where}?dry_run=true" if options.dry_run else where, body)
    if options.dry_run:
        _show_plan(call, started)
    else:
        _show_or_wait(call, started)


def undo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="NAME or NAMESPACE/NAME")
    parser.add_argument("--to-revision", metavar="REVISION", help="earlier stable revision (the previous one)")
    wait_arguments(parser)


def undo(call: Call) -> None:
    """Rolls back to an earlier stable revision, at once where it still runs."""
    options = call.options
    body = {"revision": options.to_revision} if options.to_revision else {}
    rollout = call.client.post(path("services", *service_path(options.service), "rollback"), body)
    _show_or_wait(call, rollout)


def status_arguments(parser: argparse.ArgumentParser) -> None:
    which_argument(parser)
    wait_arguments(parser)


def status(call: Call) -> None:
    """Shows a rollout: its step, why it waits, and the results of the analysis."""
    _show_or_wait(call, find(call))


def which_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rollout", metavar="ROLLOUT", help="id of a rollout, or a service for its newest rollout")


def comment_arguments(parser: argparse.ArgumentParser) -> None:
    which_argument(parser)
    parser.add_argument("--comment", default="", metavar="TEXT", help="reason, for the record")


def promote(call: Call) -> None:
    """Continues a paused rollout."""
    _decide(call, "promote")


def abort(call: Call) -> None:
    """Aborts a rollout: sends all traffic back to the stable revision."""
    _decide(call, "abort")


def retry(call: Call) -> None:
    """Restarts an aborted or degraded rollout from its first step."""
    _decide(call, "retry")


def wait_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="waits for the end: exit 0 Healthy, 3 Degraded, 6 Aborted")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600); then exit 4"
    )


def _decide(call: Call, verb: str) -> None:
    body = {"comment": call.options.comment} if call.options.comment else {}
    rollout = call.client.post(path("rollouts", find(call)["id"], verb), body)
    show(call, rollout)


def find(call: Call) -> Json:
    """Return the rollout that an id or a service's name means."""
    text: str = call.options.rollout
    if text.isdecimal():
        return call.client.get(path("rollouts", text))
    namespace, name = service_path(text)
    rollout: Json | None = call.client.get(path("services", namespace, name))["rollout"]
    if rollout is None:
        raise CliError(
            f"service {namespace}/{name} has had no rollout; start one with `fairlead rollouts start {text}`"
        )
    return rollout


def _show_or_wait(call: Call, rollout: Json) -> None:
    if not call.options.wait:
        return show(call, rollout)
    with failures.shown_at_a_bad_end(call, *service_path(rollout["service"])):
        ended = wait(call, rollout)
        show(call, ended)
        return require_healthy(ended)


def require_healthy(ended: Json) -> None:
    """Raise Aborted or EndedBadly unless the rollout ended Healthy."""
    if ended["phase"] != "Healthy":
        error = Aborted if ended["phase"] == "Aborted" else EndedBadly
        raise error(f"rollout {ended['id']} of {ended['service']} ended {ended['phase']}: {ended['reason']['message']}")


def _show_plan(call: Call, plan: Json) -> None:
    if call.as_json:
        call.show(plan, {})
    else:
        print("\n".join(map(render.clean, [plan["message"], *contract_changes.lines(plan.get("contract"))])))
        for warning in plan.get("warnings", ()):
            print("\n" + render.clean(f"Warning: {warning}."))
        if plan.get("room"):
            print("\n" + render.clean(f"Room on the nodes: {plan['room']['message']}."))
        if plan.get("analysis"):
            print("\n" + rollout_plan.text(plan["analysis"]))


def show(call: Call, rollout: Json) -> None:
    """Print all that is known of a rollout."""
    if call.as_json:
        call.show(rollout, {})
    else:
        print(rollout_view.as_text(rollout))


def is_over(rollout: Json) -> bool:
    """Return whether nothing moves it any more."""
    return rollout["phase"] in _ENDED


def wait(call: Call, rollout: Json) -> Json:
    """Return the ended rollout; reports its progress meanwhile. TimedOut after the call's `--timeout`."""
    what = f"the end of rollout {rollout['id']}"
    where = path("rollouts", rollout["id"])

    limits = {"timeout_s": call.options.timeout, "every_s": _LOOK_EVERY_S}
    if not sys.stderr.isatty():
        reporter = Reporter(call.note)

        def look_and_report() -> Json:
            seen = call.client.get(where)
            reporter.see(rollout_view.line(seen), rollout_view.turn(seen))
            return seen

        return wait_until(look_and_report, is_over, what=what, **limits)
    with Live(rollout_view.live(rollout), console=Console(stderr=True), transient=True) as display:

        def look_and_draw() -> Json:
            seen = call.client.get(where)
            display.update(rollout_view.live(seen))
            return seen

        return wait_until(look_and_draw, is_over, what=what, **limits)
