"""`fairlead feedback`: kept answers of a service, labels for them, and scorers of both."""

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from fairlead_cli.client import Client, path
from fairlead_cli.commands.services import service_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import ApiError, CliError
from fairlead_cli.files.label_files import Piece, pieces
from fairlead_cli.output import render
from fairlead_cli.output.progress import Reporter

_KINDS = ("accuracy", "topK", "logLoss", "brier", "absoluteError", "squaredError", "costMatrix", "reward")
_MOST_SENT = 10_000
_KEPT: render.Columns = {
    "share": lambda row: render.percent(row["share_percent"]),
    "days": "days",
    "answers": lambda row: f"{row['rows']} of {row['max_rows']}",
    "size": lambda row: f"{render.size(row['bytes'])} of {render.size(row['max_bytes'])}",
    "left out": "left_out",
    "top of": lambda row: row["output"] or "the first output",
    "values of": "outputs",
    "inputs": "keeps_inputs",
    "parameters": "parameters",
    "since": "created_at",
    "by": "created_by",
}
_TAKEN: render.Columns = {"received": "received", "changed": "changed", "repeated": "repeated"}
_SCORER: render.Columns = {
    "scorer": "name",
    "kind": "kind",
    "options": lambda row: render.pairs(row["options"]),
    "unit": "unit.name",
    "scores earlier labels": "backfilling",
    "unscored": "unscored",
    "reason": "unscored_reason",
}
_SUMMARY: render.Columns = {
    "answers": lambda row: "none are kept" if row["answers"] is None else row["answers"]["rows"],
    "size": lambda row: "-" if row["answers"] is None else render.size(row["answers"]["bytes"]),
    "left out": lambda row: "-" if row["answers"] is None else row["answers"]["left_out"],
    "labels": "received",
    "joined": "joined",
    "waiting": "waiting",
    "unmatched": "unmatched",
}


def keep_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("--share", type=float, metavar="PERCENT", help="percentage of requests to keep (100)")
    parser.add_argument("--days", type=int, metavar="N", help="days after which an answer is deleted (30)")
    parser.add_argument("--max-rows", type=int, metavar="N", help="maximum number of answers (1000000)")
    parser.add_argument("--max-bytes", type=int, metavar="BYTES", help="maximum size of the answers (1 GiB)")
    parser.add_argument("--output-name", metavar="NAME", help="output whose top class is kept (the first)")
    parser.add_argument(
        "--outputs", type=_names, metavar="NAMES", help="outputs whose values are kept, separated by commas (none)"
    )
    parser.add_argument(
        "--inputs", action="store_true", default=None, help="keep the inputs' values too, which are clients' data"
    )
    parser.add_argument(
        "--parameters",
        type=_names,
        metavar="NAMES",
        help="request parameters to slice quality by, separated by commas (none)",
    )


def keep(call: Call) -> None:
    """Keeps answers of a service from now on, for labels that come later; changes what is kept where it does.

    What an option does not say has its default.
    """
    options = call.options
    asked = {
        "share_percent": options.share,
        "days": options.days,
        "max_rows": options.max_rows,
        "max_bytes": options.max_bytes,
        "output": options.output_name,
        "outputs": options.outputs,
        "keeps_inputs": options.inputs,
        "parameters": options.parameters,
    }
    body = {name: value for name, value in asked.items() if value is not None}
    call.show(call.client.put(_path(call, "answers"), body), _KEPT)


def stop(call: Call) -> None:
    """Keeps no further answers of a service; those kept remain until their days are over."""
    call.client.delete(_path(call, "answers"))
    call.done(f"no further answers of {call.options.service} are kept", stopped=call.options.service)


def score_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("name", metavar="NAME", help="name of the scorer")
    parser.add_argument("--kind", choices=_KINDS, help="how an answer is scored by its label")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="option of the kind, such as bound=10; a value may be JSON, such as costs=[[0,1],[5,0]]; repeatable",
    )
    parser.add_argument("--delete", action="store_true", help="delete the scorer with its scores instead")


def score(call: Call) -> None:
    """Makes or changes a scorer of a service: how answers are scored once their labels come.

    Another kind or other options delete its scores; then it scores all labels that are stored.
    """
    options = call.options
    address = _path(call, "scorers", options.name)
    if options.delete:
        call.client.delete(address)
        return call.done(f"deleted scorer {options.name} of {options.service}", deleted=options.name)
    if options.kind is None:
        raise CliError(f"--kind is missing; it is one of {', '.join(_KINDS)}")
    body = {"kind": options.kind, "options": {name: _value(text) for name, text in options.option}}
    call.show(call.client.put(address, body), _SCORER)
    return None


def send_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument(
        "labels",
        nargs="+",
        type=_pair,
        metavar="REQUEST_ID=VALUE",
        help="a request's x-request-id and its label: a number, a text, or a list in JSON's form with one for each row",
    )


def send(call: Call) -> None:
    """Sends labels of requests: the right answer, a score or a reward. The same label again changes nothing."""
    pairs = call.options.labels
    if len(pairs) > _MOST_SENT:
        raise CliError(f"{len(pairs)} labels are more than the {_MOST_SENT} of one call; write them to a file")
    labels = [{"request_id": request_id, "value": _value(text)} for request_id, text in pairs]
    call.show(call.client.post(_path(call), {"labels": labels}), _TAKEN)


def file_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="labels as .csv, .jsonl or .parquet, with request_id, value and, if known, given_at",
    )


def file(call: Call) -> None:
    """Sends a file of labels, in parts of 10000. After an error it can be sent again from its beginning."""
    sums = {"received": 0, "changed": 0, "repeated": 0}
    reporter = Reporter(call.note)
    for piece in pieces(call.options.file):
        taken = _send_piece(call.client, _path(call), piece, sums["received"])
        sums = {name: sums[name] + taken[name] for name in sums}
        if piece.read < piece.size:
            line = f"{sums['received']} labels sent, {100 * piece.read // piece.size} % of the file"
            reporter.see(line, turn=piece.read * 10 // piece.size)
    call.show(sums, _TAKEN)


def show(call: Call) -> None:
    """Shows the feedback of a service: kept answers, labels by what became of them, scorers."""
    found = call.client.get(_path(call))
    if call.as_json:
        return call.show(found, {})
    call.show(found, _SUMMARY)
    if found["scorers"]:
        print()
        call.show_list(found["scorers"], _SCORER)
    return None


def _send_piece(client: Client, address: str, piece: Piece, before: int) -> Mapping[str, int]:
    try:
        return client.post_content(address, piece.content, piece.media_type)
    except ApiError as error:
        taken = f"; the {before} labels before were taken" if before else ""
        raise CliError(f"{piece.place}: {error}{taken}") from error


def _path(call: Call, *more: str) -> str:
    return path("services", *service_path(call.options.service), "feedback", *more)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(f"{text!r} is no pair; expected two parts with = between them")
    return name, value


def _value(text: str) -> Any:
    """Return a number or a list that the text has in JSON's form, else the text."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_constant(text)
    return value if isinstance(value, int | float | list) and not isinstance(value, bool) else text


def _refuse_constant(name: str) -> NoReturn:
    raise CliError(f"{name} is no finite number; expected one, a text or a list")
