"""`fairlead services replay` and `services replays`: a recording answered again by a version without clients."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.commands.services import service_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import CliError, EndedBadly
from fairlead_cli.files.documents import read_documents
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S = 0.5


def _agreement(row: Mapping[str, Any]) -> str:
    return "-" if row["comparison"] is None else render.percent(row["comparison"]["agreement_percent"])


def _verdict(row: Mapping[str, Any]) -> str:
    return "-" if row["comparison"] is None else str(row["comparison"]["measurement"]["verdict"])


def _message(row: Mapping[str, Any]) -> str:
    return str(row["reason"] if row["comparison"] is None else row["comparison"]["measurement"]["message"])


COLUMNS: render.Columns = {
    "replay": "id",
    "version": "version",
    "recording": lambda row: row["recording"] or "deleted",
    "status": "status",
    "answered": lambda row: f"{row['done']} of {row['total']}",
    "agreement": _agreement,
    "verdict": _verdict,
    "began": "created_at",
    "by": "created_by",
}
_FACTS: render.Columns = {**COLUMNS, "found": _message}
_OUTPUTS: render.Columns = {
    "output": "name",
    "datatype": "datatype",
    "answers": lambda row: ", ".join(f"{count} {kind}" for kind, count in row["kinds"].items()),
    "largest difference": lambda row: "-" if row["absolute"] is None else f"{row['absolute']['largest']:.3g}",
}
_WORST: render.Columns = {"request": "request_id", "at": "at", "differs": "message"}


def replay_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("--version", required=True, help="version to replay on: 2, @champion, models:/NAME/2")
    parser.add_argument("--recording", type=_recording, help="number of the recording, or latest (latest)")
    parser.add_argument(
        "--comparison",
        type=Path,
        metavar="FILE",
        help="criteria for the answers, in the format of a policy's analysis.comparison",
    )
    parser.add_argument(
        "--wait", action="store_true", help="waits for the end: exit 0 only if the answers agree, else 3"
    )
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600); then exit 4"
    )


def _recording(text: str) -> int | None:
    if text == "latest":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no recording; expected a number, or latest")
    return int(text)


def replay(call: Call) -> None:
    """Replays recorded requests on a version that no client can reach, and compares its answers."""
    options = call.options
    where = path("services", *service_path(options.service), "replays")
    asked: dict[str, Any] = {"version": options.version}
    if options.recording is not None:
        asked["recording"] = options.recording
    if options.comparison:
        documents = read_documents(options.comparison)
        if len(documents) > 1:
            raise CliError(f"{options.comparison} holds {len(documents)} documents; expected the one comparison")
        asked["comparison"] = documents[0]
    row = call.client.post(where, asked)
    if not options.wait:
        call.show(row, _FACTS)
        return
    ended = _ended(call, f"{where}/{row['id']}", row)
    call.show(ended, _FACTS)
    if ended["comparison"] is not None and not call.as_json:
        print()
        call.show_list(ended["comparison"]["outputs"], _OUTPUTS)
        if ended["comparison"]["worst"]:
            print()
            call.show_list(ended["comparison"]["worst"], _WORST)
    if _verdict(ended) != "Successful":
        raise EndedBadly(f"version {ended['version']} does not answer as was recorded: {_message(ended)}")


def list_replays(call: Call) -> None:
    """Lists the replays of a service, newest first."""
    call.show_list(call.client.all(path("services", *service_path(call.options.service), "replays")), COLUMNS)


def _ended(call: Call, where: str, row: Json) -> Json:
    reported: list[int] = []

    def look() -> Json:
        seen = call.client.get(where)
        if reported[-1:] != [seen["done"]]:
            reported.append(seen["done"])
            call.note(f"{seen['done']} of {seen['total']} requests answered")
        return seen

    return wait_until(
        look,
        lambda seen: seen["status"] != "PENDING",
        timeout_s=call.options.timeout,
        every_s=_LOOK_EVERY_S,
        what=f"the end of replay {row['id']} of {row['service']}",
    )
