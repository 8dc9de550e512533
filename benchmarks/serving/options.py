"""The command line of `make bench`: which servers are measured, and at which points. A name nobody knows ends it."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks.serving import measuring
from benchmarks.serving.peers import PEERS
from benchmarks.serving.peers.base import Peer


@dataclass(frozen=True)
class Options:
    """What the command line asks for; `record` makes the run the one to compare with."""

    peers: Sequence[Peer]
    plan: measuring.Plan
    quick: bool
    record: bool


def parse(arguments: Sequence[str] | None, description: str) -> Options:
    """Return the options, of the process's own arguments for None; ends the process with 2 where they are wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--quick", action="store_true", help="fewer points, shorter: about eleven minutes")
    parser.add_argument("--record", action="store_true", help="make this run the recorded one")
    parser.add_argument("--only", nargs="*", default=[], metavar="SERVER", help=f"of {', '.join(names)}")
    parser.add_argument(
        "--points", nargs="*", default=[], metavar="MODEL/FORM", help="of the plan, such as image_mean/json"
    )
    found = parser.parse_args(arguments)
    if found.record and found.points:
        parser.error("--record keeps a whole run to compare with: leave --points out")
    plan = measuring.plan(quick=found.quick)
    _check("--only", found.only, names)
    _check("--points", found.points, {f"{point.model}/{point.form}" for point in plan.points})
    return Options(
        [peer for peer in PEERS if not found.only or peer.name in found.only],
        replace(plan, points=[p for p in plan.points if not found.points or f"{p.model}/{p.form}" in found.points]),
        quick=found.quick,
        record=found.record,
    )


def _check(flag: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.stderr.write(f"{flag} {' '.join(unknown)} is not measured; what is: {' '.join(sorted(known))}\n")
        sys.exit(2)
