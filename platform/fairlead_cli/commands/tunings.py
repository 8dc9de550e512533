"""`fairlead models tune`, `models tunings`, `models stop-tuning`: highest throughput within a latency."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fairlead_cli.client import Json, path
from fairlead_cli.commands.models import name_argument
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import CliError, EndedBadly
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S, _SPARE_S = 0.5, 3600.0
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_KEY = ("instances", "batch_size", "queue_delay_us", "intra_op_threads", "concurrency")
_OPTIONS = ("rows", "largest_request_rows", "max_batch_size", "max_instances", "max_concurrency")


def _best(row: Mapping[str, Any]) -> str:
    best = (row["report"] or {}).get("chosen") or row["progress"].get("best")
    return f"{best['requests_per_s']:,.0f}/s, p99 {best['p99_ms']:g} ms" if best else "-"


COLUMNS: render.Columns = {
    "tuning": "id",
    "version": "version",
    "service": "service",
    "cluster": "cluster",
    "p99 limit": lambda row: f"{row['order']['max_latency_p99_ms']:g} ms",
    "status": "status",
    "spent": lambda row: render.percent(100.0 * (row["progress"].get("spent") or 0)),
    "best": _best,
    "reason": "reason",
    "began": "created_at",
    "by": "created_by",
}
POINTS: render.Columns = {
    "p99 ms": lambda point: f"{point['p99_ms']:.2f}",
    "p50 ms": lambda point: f"{point['p50_ms']:.2f}",
    "requests/s": lambda point: f"{point['requests_per_s']:,.0f}",
    "instances": "instances",
    "batch": "batch_size",
    "delay us": "queue_delay_us",
    "threads": "intra_op_threads",
    "at once": "concurrency",
    "": lambda point: point["note"] or " ",
}


def version_option(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("--version", type=int, required=True, metavar="NUMBER", help="number of the version")


def tune_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("--max-latency-p99-ms", type=float, required=True, metavar="MS", help="maximum p99 latency")
    parser.add_argument(
        "--service",
        metavar="[NAMESPACE/]NAME",
        help="searches where this service's replicas run, with their resources, variables and "
        "configuration (the default cluster)",
    )
    parser.add_argument(
        "--budget", type=_duration, metavar="TIME", help="time limit of the search, such as 90s or 10m (5m)"
    )
    parser.add_argument("--rows", type=int, metavar="N", help="rows of a request (1)")
    parser.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        metavar="INPUT:DIMS",
        help="shape of an input with variable dims, without the batch, such as tokens:128 (1 each); may be repeated",
    )
    parser.add_argument(
        "--largest-request-rows",
        type=int,
        metavar="N",
        help="maximum rows that clients send in one request; allows a smaller max_batch_size (as many as now)",
    )
    parser.add_argument("--max-batch-size", type=int, metavar="N", help="maximum batch size to try (128)")
    parser.add_argument(
        "--max-instances", type=int, metavar="N", help="maximum number of instances to try (cores; on a GPU 4)"
    )
    parser.add_argument("--max-concurrency", type=int, metavar="N", help="maximum concurrent requests (256)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="file for a plot of throughput and latency")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="file for all measurements")
    parser.add_argument(
        "--apply", action="store_true", help="applies the chosen configuration to the service, as a new revision"
    )
    parser.add_argument("--no-wait", action="store_true", help="returns without waiting for the end")


def tune(call: Call) -> None:
    """Searches for the instances, batch size, queue delay and threads that serve most within a latency."""
    options = call.options
    if options.apply and not options.service:
        raise CliError("--apply configures a service; name it by --service")
    if options.no_wait and (options.apply or options.plot or options.report):
        raise CliError("--apply, --plot and --report need the end of the search; leave --no-wait out")
    where = path("models", options.name, "versions", options.version, "tunings")
    row = call.client.post(where, _order(options))
    if options.no_wait:
        return call.show(row, COLUMNS)
    ended = _ended(call, f"{where}/{row['id']}", row)
    if ended["status"] != "DONE":
        raise EndedBadly(f"{row['model']} version {row['version']} was not tuned: {ended['reason']}")
    _write(options, ended)
    _show(call, ended)
    chosen = ended["report"]["chosen"]
    if chosen is None:
        raise EndedBadly(str(ended["report"]["reason"]))
    if options.apply:
        _apply(call, f"{where}/{row['id']}/apply", chosen)
    return None


def list_tunings(call: Call) -> None:
    """Lists the tunings of a version, newest first."""
    options = call.options
    call.show_list(call.client.all(path("models", options.name, "versions", options.version, "tunings")), COLUMNS)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("id", type=int, metavar="TUNING", help="number of the tuning")


def stop(call: Call) -> None:
    """Stops an unfinished tuning."""
    options = call.options
    call.client.delete(path("models", options.name, "versions", options.version, "tunings", options.id))
    call.done(f"stopped tuning {options.id}", stopped=options.id)


def _order(options: argparse.Namespace) -> dict[str, Any]:
    asked: dict[str, Any] = {"max_latency_p99_ms": options.max_latency_p99_ms}
    asked |= {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    if options.budget is not None:
        asked["budget_s"] = options.budget
    if options.shape:
        asked["shapes"] = dict(options.shape)
    if options.service:
        asked["service"] = "/".join(service_path(options.service))
    return asked


def _ended(call: Call, where: str, row: Json) -> Json:
    """Return the ended tuning; reports the best of the measurements meanwhile."""
    reported: list[tuple[str, int]] = []

    def look() -> Json:
        seen = call.client.get(where)
        progress = seen["progress"]
        now = (_best(seen), int(10 * (progress.get("spent") or 0)))
        if progress and reported[-1:] != [now]:
            reported.append(now)
            call.note(
                f"{render.percent(100.0 * progress['spent'])} spent, {progress['measurements']} measured, best {now[0]}"
            )
        return seen

    return wait_until(
        look,
        lambda seen: seen["status"] != "PENDING",
        timeout_s=row["order"]["budget_s"] + _SPARE_S,
        every_s=_LOOK_EVERY_S,
        what=f"the end of tuning {row['id']} of {row['model']} version {row['version']}",
    )


def _write(options: argparse.Namespace, ended: Json) -> None:
    try:
        if options.plot is not None:
            options.plot.write_text(ended["plot"], encoding="utf-8")
        if options.report is not None:
            options.report.write_text(render.as_json(ended["report"]) + "\n", encoding="utf-8")
    except OSError as error:
        raise CliError(f"what was found cannot be written to {error.filename}: {error.strerror}") from error


def _show(call: Call, ended: Json) -> None:
    if call.as_json:
        return call.show(ended, {})
    report = ended["report"]
    call.show_list(_noted(report), POINTS)
    print(f"\n{render.clean(report['conclusion'])}")
    if report["chosen"] is not None and report["chosen"]["config"]:
        config = {"config": report["chosen"]["config"]}
        print(f"\nin the service file, under spec.predictor.model:\n{yaml.safe_dump(config, sort_keys=False)}".rstrip())
    return None


def _noted(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the frontier, what was chosen and the configuration as it is, each once, the quickest first."""
    notes: dict[tuple[Any, ...], list[str]] = {}
    points: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    named = (("chosen", report["chosen"]), ("as it is", report["baseline"]))
    for note, point in (*(("", each) for each in report["frontier"]), *named):
        if point is not None:
            key = tuple(point[name] for name in _KEY)
            points[key] = point
            notes.setdefault(key, []).extend([note] if note else [])
    shown = [{**point, "note": ", ".join(notes[key])} for key, point in points.items()]
    return sorted(shown, key=lambda point: float(point["p99_ms"]))


def _apply(call: Call, where: str, chosen: Mapping[str, Any]) -> None:
    if not chosen["config"]:
        return call.note("the service is configured so already; nothing is applied")
    service = call.client.post(where, {})
    return call.note(
        f"service {service['namespace']}/{service['name']} has a new revision; follow its rollout by services show"
    )


def _duration(text: str) -> int:
    unit = _SECONDS.get(text[-1:])
    if unit is None or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected such as 90s, 5m or 1h")
    return unit * int(text[:-1])


def _shape(text: str) -> tuple[str, list[int]]:
    name, _, dims = text.rpartition(":")
    sizes = dims.split("x")
    if not name or not all(size.isdecimal() and int(size) for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is not INPUT:DIMS, as in tokens:128 or image:3x224x224")
    return name, [int(size) for size in sizes]
