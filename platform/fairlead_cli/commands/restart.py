"""`fairlead services restart`: rolling restart of a service."""

import argparse

from fairlead_cli.client import Json, path
from fairlead_cli.commands.refusals import Refusals
from fairlead_cli.commands.services import service_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S = 0.5


def restart_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("--wait", action="store_true", help="waits until every replica is replaced")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600); then exit 4"
    )


def restart(call: Call) -> None:
    """Restarts a service: replaces every replica by a new one, one after the other, without failed requests."""
    namespace, name = service_path(call.options.service)
    where = path("services", namespace, name)
    service = call.client.post(f"{where}/restart")
    if not call.options.wait:
        return call.done(f"restarting the replicas of {namespace}/{name}", restarting=f"{namespace}/{name}")
    reported: list[int] = []
    refusals = Refusals()

    def look() -> Json:
        seen = call.client.get(where)
        if reported[-1:] != [_left(seen)]:
            reported.append(_left(seen))
            call.note(f"{reported[-1]} replicas left to restart")
        if _left(seen):
            refusals.check(seen)
        return seen

    wait_until(
        look,
        lambda seen: not _left(seen),
        timeout_s=call.options.timeout,
        every_s=_LOOK_EVERY_S,
        what=f"the restart of {service['namespace']}/{service['name']}",
    )
    return call.done(f"restarted the replicas of {namespace}/{name}", restarted=f"{namespace}/{name}")


def _left(service: Json) -> int:
    return sum(revision["replicas_to_restart"] for revision in service["revisions"])
