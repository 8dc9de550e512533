"""`fairlead models try`, `models trials`, `models stop-trial`: a test request before a service runs the model."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.commands.tunings import version_option
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError, EndedBadly
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S, _LONGEST_S = 0.5, 3600.0
_SHOWN_VALUES = 8
_OK = 200


def _took(name: str) -> render.Cell:
    return lambda row: f"{row['report'][name]:,.1f} ms" if name in row["report"] else None


COLUMNS: render.Columns = {
    "trial": "id",
    "version": "version",
    "cluster": "cluster",
    "status": "status",
    "at": "stage",
    "answered": lambda row: row["report"].get("status"),
    "answer takes": _took("infer_ms"),
    "the first": _took("first_ms"),
    "loading": _took("load_ms"),
    "reason": lambda row: row["reason"] or row["report"].get("error"),
    "began": "created_at",
    "by": "created_by",
}
OUTPUTS: render.Columns = {
    "output": "name",
    "datatype": "datatype",
    "shape": lambda output: f"[{','.join(map(str, output['shape']))}]",
    "values": lambda output: _values(output["data"]),
}


def try_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE.json", help="body of a V2 inference request")
    parser.add_argument("--no-wait", action="store_true", help="returns without waiting for the answer")


def try_version(call: Call) -> None:
    """Runs one request on a version; no service needs to serve it."""
    options = call.options
    where = path("models", options.name, "versions", options.version, "trials")
    row = call.client.post(where, {"request": _request(options.data)})
    if options.no_wait:
        return call.show(row, COLUMNS)
    ended = _ended(call, f"{where}/{row['id']}", row)
    which = f"{row['model']} version {row['version']}"
    if ended["status"] != "DONE":
        raise EndedBadly(f"{which} was not tried: {ended['reason']}")
    report = ended["report"]
    if "error" in report:
        said = "refused the request" if report["status"] != _OK else "answered, and the answer cannot be shown"
        raise EndedBadly(f"{which} {said} ({report['status']}): {report['error']}")
    call.show(ended, COLUMNS)
    if not call.as_json:
        print()
        call.show_list(ended["answer"]["outputs"], OUTPUTS)
    return None


def list_trials(call: Call) -> None:
    """Lists the stored trials of a version, newest first."""
    options = call.options
    call.show_list(call.client.all(path("models", options.name, "versions", options.version, "trials")), COLUMNS)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("id", type=int, metavar="TRIAL", help="number of the trial")


def stop(call: Call) -> None:
    """Stops an unfinished trial."""
    options = call.options
    call.client.delete(path("models", options.name, "versions", options.version, "trials", options.id))
    call.done(f"stopped trial {options.id}", stopped=options.id)


def _request(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CliError(f"{file} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CliError(f"{file} holds no object; expected the body of a V2 inference request")
    return found


def _ended(call: Call, where: str, row: Json) -> Json:
    """Return the ended trial; reports its progress meanwhile."""
    reported: list[str] = []

    def look() -> Json:
        seen = call.client.get(where)
        if (stage := seen["stage"]) and reported[-1:] != [stage]:
            reported.append(stage)
            call.note(stage)
        return seen

    return wait_until(
        look,
        lambda seen: seen["status"] != "PENDING",
        timeout_s=_LONGEST_S,
        every_s=_LOOK_EVERY_S,
        what=f"the end of trial {row['id']} of {row['model']} version {row['version']}",
    )


def _values(data: list[Any]) -> str:
    shown = ", ".join(f"{each:.6g}" if isinstance(each, float) else str(each) for each in data[:_SHOWN_VALUES])
    return shown if len(data) <= _SHOWN_VALUES else f"{shown}, … ({len(data)} values)"
