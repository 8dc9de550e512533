"""Summary report of the demo, once as JSON and once for people."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fairlead_cli.client import Json
from fairlead_cli.demo import evaluation
from fairlead_cli.demo.evaluation import Check, Share
from fairlead_cli.demo.requests import Request
from fairlead_cli.demo.screen import Screen
from fairlead_cli.demo.story import Chapter
from fairlead_cli.output import render

SCHEMA = "fairlead.demo-report/v1"
_LABELS = ("sent", "unsent", "failures", "message", "joined", "waiting", "unmatched")


def build(
    *,
    requests: Sequence[Request],
    good: Chapter,
    failing: Chapter,
    mistaken: Chapter,
    service: Json,
    labels: Json,
    training: Json,
    seconds: float,
) -> Json:
    """Return the report: requests, observations, decisions, and whether all checks held."""
    chapters = (good, failing, mistaken)
    shares = [evaluation.share(window, requests) for chapter in chapters for window in chapter.windows]
    found = evaluation.checks(
        requests=requests,
        shares=shares,
        good=good.rollout,
        failing=failing.rollout,
        mistaken=mistaken.rollout,
        service=service,
        labels=labels,
    )
    versions = {
        good.rollout["from_revision"]: int(good.rollout["from_version"]),
        **{chapter.rollout["to_revision"]: chapter.version for chapter in chapters},
    }
    return {
        "schema": SCHEMA,
        "ok": all(check.ok for check in found),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "requests": {"sent": len(requests), "failed": sum(not request.ok for request in requests)},
        "protocols": evaluation.by_protocol(requests),
        "revisions": evaluation.by_revision(requests, versions),
        "steps": [_step(each) for each in shares],
        "rollouts": [_rollout(chapter) for chapter in chapters],
        "labels": {key: labels[key] for key in _LABELS},
        "training": {key: training[key] for key in ("images", "trained_on", "held_out", "versions")},
        "checks": [{"name": check.name, "ok": check.ok, "message": check.message} for check in found],
    }


def show(report: Json, screen: Screen) -> None:
    """Print the report."""
    sent, failed = report["requests"]["sent"], report["requests"]["failed"]
    screen.plain(f"\n{sent} requests with real images in {report['seconds']:.0f} s, {failed} failed")
    labels = report["labels"]
    screen.plain(f"{labels['sent']} labels seconds after their answers, {labels['joined']} joined with them")
    screen.table(
        "By revision (accuracy of what it answered, on images that no version was trained on)",
        report["revisions"],
        {
            "revision": "revision",
            "version": "version",
            "requests": "requests",
            "failed": "failed",
            "accuracy": lambda row: render.percent(row["accuracy_percent"]),
        },
    )
    screen.table(
        "By protocol",
        report["protocols"],
        {
            "protocol": "protocol",
            "requests": "requests",
            "failed": "failed",
            "p50 ms": "latency_p50_ms",
            "p99 ms": "latency_p99_ms",
        },
    )
    screen.table(
        "Share of the requests at each step, as the client saw it",
        report["steps"],
        {
            "version": "version",
            "asked": lambda row: render.percent(row["weight_percent"]),
            "seen": lambda row: render.percent(row["seen_percent"]),
            "requests": "requests",
            "tolerance": lambda row: f"+-{render.percent(row['tolerance_percent'])}",
        },
    )
    screen.table(
        "Rollouts",
        report["rollouts"],
        {"version": lambda row: f"{row['from_version']} -> {row['to_version']}", "ended": "phase", "why": "reason"},
    )
    screen.checks([Check(each["name"], each["ok"], each["message"]) for each in report["checks"]])


def _step(seen: Share) -> dict[str, Any]:
    return {
        "version": seen.window.version,
        "revision": seen.window.revision,
        "weight_percent": seen.window.weight_percent,
        "seen_percent": round(seen.seen_percent, 2),
        "tolerance_percent": round(seen.tolerance_percent, 2),
        "requests": seen.requests,
        "seconds": round(seen.window.ended_at - seen.window.started_at, 1),
        "ok": seen.ok,
    }


def _rollout(chapter: Chapter) -> dict[str, Any]:
    rollout = chapter.rollout
    return {
        "id": rollout["id"],
        "from_version": rollout["from_version"],
        "to_version": rollout["to_version"],
        "phase": rollout["phase"],
        "code": rollout["reason"]["code"],
        "reason": rollout["reason"]["message"],
        "started_at": rollout["started_at"],
        "finished_at": rollout["finished_at"],
        "analysis_runs": rollout["analysis_runs"],
    }
