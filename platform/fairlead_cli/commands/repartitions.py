"""`fairlead clusters repartition` and `fairlead repartitions`: MIG repartition of a node's GPUs, after approval."""

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.context import Call
from fairlead_cli.errors import Aborted, CliError, EndedBadly
from fairlead_cli.files.documents import read_documents
from fairlead_cli.output import render
from fairlead_cli.output.progress import Reporter
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S = 1.0
_ENDED = {"Declined", "Outdated", "Done", "Aborted"}
COLUMNS: render.Columns = {
    "repartition": "id",
    "node": "node",
    "for": "wanted",
    "phase": "phase",
    "since": "since",
    "message": "message",
    "proposed by": "proposed_by",
}
_FACTS: render.Columns = {
    "repartition": lambda row: f"{row['id']} of node {row['node']} ({row['product']})",
    "for": "wanted",
    "why": "why",
    "GPUs": "gpus",
    "before": lambda row: _cut(row, "before"),
    "after": lambda row: _cut(row, "after"),
    "have to leave": "leaving",
    "phase": "phase",
    "message": "message",
    "in the way": "held",
    "proposed": lambda row: f"{row['proposed_by']}, {render.clean(row['proposed_at'])}",
    "decided": lambda row: _by(row, "decided_by", "decided_at", "decision_reason"),
    "aborted": lambda row: _by(row, "aborted_by", "aborted_at", "abort_reason"),
}


def propose_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the cluster")
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "--for",
        action="append",
        dest="demands",
        metavar="SLICES",
        help="required slices, such as '2 x 3g.40gb' or '1 x 30Gi'; may be repeated",
    )
    wanted.add_argument(
        "--service", metavar="SERVICE", help="service whose rollout requires the slices: NAME or NAMESPACE/NAME"
    )
    wanted.add_argument("-f", "--file", type=Path, help="service file that did not fit")
    parser.add_argument("--version", help="version for --service: 2, @champion or models:/NAME/2 (the live one)")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="approves the repartition, and waits for the end: exit 0 Done, 6 Aborted, 3 otherwise",
    )
    _decision_arguments(parser)
    _timeout_argument(parser)


def propose(call: Call) -> None:
    """Proposes a MIG repartition of a node's GPUs that provides a slice; it starts only after approval."""
    options = call.options
    if options.version and not options.service:
        raise CliError("--version goes with --service, whose version it is")
    row = call.client.post(path("clusters", options.name, "repartitions"), _wanted(options))
    if not options.yes:
        _show(call, row)
        call.note(f"to have it done: fairlead repartitions approve {options.name} {row['id']}")
        return
    if not call.as_json:
        call.show(row, _FACTS)
    approved = call.client.post(_path(options.name, row["id"], "approve"), {"reason": options.reason})
    _show_end(call, approved)


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="CLUSTER", help="name of the cluster")


def list_repartitions(call: Call) -> None:
    """Lists the repartitions of a cluster's nodes, newest first."""
    call.show_list(call.client.all(_path(call.options.name)), COLUMNS)


def show_arguments(parser: argparse.ArgumentParser) -> None:
    list_arguments(parser)
    parser.add_argument("id", type=int, metavar="REPARTITION", help="number of the repartition")


def waiting_arguments(parser: argparse.ArgumentParser) -> None:
    show_arguments(parser)
    parser.add_argument("--wait", action="store_true", help="waits for the end: exit 0 Done, 6 Aborted, 3 otherwise")
    _timeout_argument(parser)


def show(call: Call) -> None:
    """Shows one repartition: slices before and after, workloads that must leave the node, progress."""
    row = call.client.get(_path(call.options.name, call.options.id))
    _show_end(call, row) if call.options.wait else _show(call, row)


def approve_arguments(parser: argparse.ArgumentParser) -> None:
    waiting_arguments(parser)
    _decision_arguments(parser)


def approve(call: Call) -> None:
    """Approves a proposal: the node is cordoned, services' GPU pods leave it, MIG manager repartitions it."""
    row = _decide(call, "approve")
    _show_end(call, row) if call.options.wait else _show(call, row)


def decision_arguments(parser: argparse.ArgumentParser) -> None:
    show_arguments(parser)
    _decision_arguments(parser)


def decline(call: Call) -> None:
    """Declines a proposal, with a reason."""
    _show(call, _decide(call, "decline"))


def abort(call: Call) -> None:
    """Aborts a repartition in progress; the node returns to its earlier layout and takes pods again."""
    _show(call, _decide(call, "abort"))


def _decide(call: Call, verb: str) -> Json:
    options = call.options
    return call.client.post(_path(options.name, options.id, verb), {"reason": options.reason})


def _decision_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason, for the record")


def _timeout_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=7200.0, metavar="SECONDS", help="maximum wait (7200); then exit 4"
    )


def _wanted(options: argparse.Namespace) -> dict[str, Any]:
    if options.demands:
        return {"demands": options.demands}
    if options.file:
        documents = read_documents(options.file)
        if len(documents) != 1:
            raise CliError(f"{options.file} has {len(documents)} documents; give one service file")
        return {"file": documents[0]}
    return {"service": options.service} | ({"version": options.version} if options.version else {})


def _show(call: Call, row: Json) -> None:
    call.show(row, _FACTS)


def _show_end(call: Call, row: Json) -> None:
    """Report progress until it ends, show it, and raise unless it ended with the GPUs cut."""
    where, reporter = _path(row["cluster"], row["id"]), Reporter(call.note)

    def look() -> Json:
        seen = call.client.get(where)
        reporter.see(f"{seen['phase']}: {seen['message']}", seen["phase"])
        return seen

    ended = wait_until(
        look,
        lambda seen: seen["phase"] in _ENDED,
        timeout_s=call.options.timeout,
        every_s=_LOOK_EVERY_S,
        what=f"the end of repartition {row['id']}",
    )
    _show(call, ended)
    if ended["phase"] != "Done":
        error = Aborted if ended["phase"] == "Aborted" else EndedBadly
        raise error(f"repartition {ended['id']} of node {ended['node']} ended {ended['phase']}: {ended['message']}")


def _cut(row: Mapping[str, Any], when: str) -> str:
    """Return the partition of the GPUs that are repartitioned, equal ones in one entry."""
    reported: dict[str, list[str]] = {}
    for gpu in row[when]:
        if gpu["index"] in row["gpus"]:
            counts = Counter(each["profile"] for each in gpu["slices"])
            words = " + ".join(f"{count} x {profile}" for profile, count in sorted(counts.items()))
            reported.setdefault(words, []).append(str(gpu["index"]))
    return "; ".join(f"GPU {', '.join(indices)}: {words}" for words, indices in reported.items())


def _by(row: Mapping[str, Any], who: str, when: str, why: str) -> str:
    if not row[who]:
        return ""
    return f"{row[who]}, {render.clean(row[when])}" + (f": {row[why]}" if row[why] else "")


def _path(cluster: str, *more: str | int) -> str:
    return path("clusters", cluster, "repartitions", *more)
