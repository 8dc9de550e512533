"""`fairlead recordings`: client requests to a service, recorded for a while with consent."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.commands.services import service_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.output import render

COLUMNS: render.Columns = {
    "recording": "id",
    "requests": lambda row: f"{row['requests']} of {row['max_requests']}",
    "size": lambda row: render.size(row["bytes"]),
    "share": lambda row: render.percent(row["share_percent"]),
    "began": "created_at",
    "ended": lambda row: row["ended_at"] or "runs",
    "deleted on": "expires_at",
    "by": "created_by",
}
_FACTS: render.Columns = {**COLUMNS, "why it ended": "end_reason", "consent": "consent"}


def list_recordings(call: Call) -> None:
    """Lists the recordings of a service, newest first."""
    call.show_list(call.client.all(_path(call)), COLUMNS)


def start_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument(
        "--consent",
        required=True,
        metavar="TEXT",
        help="reason and purpose for which clients' requests may be kept; shown with your name wherever "
        "the recording is shown",
    )
    parser.add_argument("--share", type=float, metavar="PERCENT", help="percentage of requests to record (100)")
    parser.add_argument(
        "--max-requests", type=int, metavar="N", help="maximum number of requests; then the recording ends (10000)"
    )
    parser.add_argument(
        "--max-bytes", type=int, metavar="BYTES", help="maximum size of its file; then the recording ends (1 GiB)"
    )
    parser.add_argument("--retention", metavar="DURATION", help="time from now until the recording is deleted (168h)")


def start(call: Call) -> None:
    """Starts a recording of a service: requests and the answers of its stable revision, under your name."""
    options = call.options
    asked = {
        "consent": options.consent,
        "share_percent": options.share,
        "max_requests": options.max_requests,
        "max_bytes": options.max_bytes,
        "retention": options.retention,
    }
    body = {name: value for name, value in asked.items() if value is not None}
    call.show(call.client.post(_path(call), body), _FACTS)


def recording_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("id", type=int, metavar="RECORDING", help="number of the recording")


def show(call: Call) -> None:
    """Shows one recording: its size, its expiry, and the responsible user."""
    call.show(call.client.get(_path(call, call.options.id)), _FACTS)


def stop(call: Call) -> None:
    """Ends a recording; its content remains until it expires."""
    call.show(call.client.post(_path(call, call.options.id, "stop")), _FACTS)


def delete(call: Call) -> None:
    """Deletes a recording with all its content."""
    call.client.delete(_path(call, call.options.id))
    call.done(f"deleted recording {call.options.id} of {call.options.service}", deleted=call.options.id)


def _path(call: Call, *more: str | int) -> str:
    return path("services", *service_path(call.options.service), "recordings", *more)
