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
    """List the recordings of a service, newest first."""
    call.show_list(call.client.all(_path(call)), COLUMNS)


def start_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument(
        "--consent",
        required=True,
        metavar="TEXT",
        help="why, and for what, clients' requests may be kept; shown with your name wherever the recording is shown",
    )
    parser.add_argument("--share", type=float, metavar="PERCENT", help="of the requests (100)")
    parser.add_argument("--max-requests", type=int, metavar="N", help="it ends with so many (10000)")
    parser.add_argument("--max-bytes", type=int, metavar="BYTES", help="it ends with so many in its file (1 GiB)")
    parser.add_argument("--retention", metavar="DURATION", help="from now on, then all is deleted (168h)")


def start(call: Call) -> None:
    """Begin to record a service: requests with the answers of its stable revision, under your name."""
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
    parser.add_argument("id", type=int, metavar="RECORDING", help="the recording's number")


def show(call: Call) -> None:
    """Show one recording: how much it holds, until when, and who answers for it."""
    call.show(call.client.get(_path(call, call.options.id)), _FACTS)


def stop(call: Call) -> None:
    """Let a recording end; what it has stays until it expires."""
    call.show(call.client.post(_path(call, call.options.id, "stop")), _FACTS)


def delete(call: Call) -> None:
    """Delete a recording with everything in it."""
    call.client.delete(_path(call, call.options.id))
    call.done(f"deleted recording {call.options.id} of {call.options.service}", deleted=call.options.id)


def _path(call: Call, *more: str | int) -> str:
    return path("services", *service_path(call.options.service), "recordings", *more)
