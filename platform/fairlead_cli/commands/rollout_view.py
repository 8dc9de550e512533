"""Rollout display for people: as one line, as text, as a live table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead_cli.client import Json
from fairlead_cli.output import contract_changes, render


def _outcome(run: Mapping[str, Any]) -> str:
    """Return a step's verdict: none without an analysis; nothing runs in one that ended before it was decided."""
    if not run.get("has_gate", True):
        return "-"
    verdict = str(run.get("verdict", "-"))
    return "Undecided" if run.get("finished_at") and verdict == "Running" else verdict


_STYLES = {
    "Healthy": "green",
    "Successful": "green",
    "Degraded": "red",
    "Failed": "red",
    "Aborted": "yellow",
    "Paused": "yellow",
}
_FACTS: render.Columns = {
    "rollout": "id",
    "service": "service",
    "from": lambda row: f"version {row['from_version']} ({row['from_revision']})",
    "to": lambda row: f"version {row['to_version']} ({row['to_revision']})",
    "policy": lambda row: f"{row['policy']} ({row['strategy']})" if row["policy"] else "none, straight to 100 %",
    "attempt": "attempt",
    "phase": "phase",
    "reason": "reason.message",
    "deadline": lambda row: f"{row['deadline_at']}, then {row['on_deadline']}" if row.get("deadline_at") else None,
    "started": "started_at",
    "ended": "finished_at",
    "by": "created_by",
}
_WAIT: render.Columns = {
    "waits for": "condition",
    "since": lambda row: render.since(row["since"]),
    "evidence": "evidence",
    "sample": lambda row: None if row["sample_size"] is None else f"{row['sample_size']} requests",
    "changes when": "changes_when",
}
_RUNS: render.Columns = {
    "attempt": "attempt",
    "step": lambda row: "all" if row["step_index"] is None else row["step_index"] + 1,
    "gets": "gets",
    "seen": lambda row: render.percent(row.get("seen_percent")),
    "requests": lambda row: _requests(row) or "-",
    "verdict": _outcome,
    "message": "message",
}

APPROVALS: render.Columns = {
    "by": "user",
    "for": lambda row: f"{row['point']}, attempt {row['attempt']}",
    "state": lambda row: f"{row['state']}: {row['why']}" if row["why"] else row["state"],
    "given": "given_at",
    "comment": "comment",
}


def wait_text(waits: Json) -> str:
    """Return why it waits, part by part."""
    return render.facts(waits, _WAIT)


_WEBHOOKS: render.Columns = {
    "webhook": "name",
    "asked": lambda row: f"{row['when']} step {row['step_index'] + 1}, {row['tries']} times",
    "answer": lambda row: (row["answer"] if row["tries"] else "not asked yet") + ("" if row["is_open"] else " (over)"),
    "message": "message",
}


def line(rollout: Json) -> str:
    """Return where a rollout is in one line."""
    where = f"{rollout['phase']}, version {rollout['to_version']} at {share(rollout)}: {rollout['reason']['message']}"
    waits = rollout.get("waits")
    return f"{where}; this changes when {waits['changes_when']}" if waits else where


def turn(rollout: Json) -> tuple[object, ...]:
    """Return what of a rollout's line is more than figures: equal as long as nothing but these has moved."""
    return rollout["phase"], rollout["reason"]["code"], rollout["step_index"], share(rollout)


def share(rollout: Json) -> str:
    """Return the actual and the desired share of requests, or of mirrored requests, of the new version."""
    kind = "mirror" if rollout.get("mirror_wanted") or rollout.get("mirror_actual") else "weight"
    actual, wanted = rollout[f"{kind}_actual"], rollout[f"{kind}_wanted"]
    text = f"{actual} %" if actual == wanted else f"{actual} % of {wanted} %"
    if match := rollout.get("match_actual"):
        return group(match) + (f" and {text} of the others" if wanted else "")
    return f"copies of {text}" if kind == "mirror" else text


def portion(step: Mapping[str, Any]) -> str:
    """Return what a step gives: `10 %`, `copies of 20 %`, `x-group: beta`; a step of a policy file is one too."""
    if step.get("mirror"):
        return f"copies of {render.percent(step['mirror'])}"
    weight = render.percent(step["weight"]) if step.get("weight") else ""
    if match := step.get("match"):
        return group(match) + (f" and {weight} of the others" if weight else "")
    return weight or "preview"


def group(match: Sequence[Mapping[str, Any]]) -> str:
    """Return which requests a group's are: `x-group: beta and x-region: eu-*`."""
    return " and ".join(f"{each['header']}: {_values(each)}" for each in match)


def _values(match: Mapping[str, Any]) -> str:
    if "prefix" in match:
        return f"{match['prefix']}*"
    return " or ".join(match["anyOf"]) if "anyOf" in match else str(match["exact"])


def as_text(rollout: Json) -> str:
    """Return all that is known of a rollout."""
    waits = rollout.get("waits")
    # The evidence of a wait is the reason, so it is printed once.
    text = render.facts(rollout, {name: cell for name, cell in _FACTS.items() if name != "reason" or not waits})
    if waits:
        text += f"\n\n{wait_text(waits)}"
    if reported := contract_changes.lines(rollout.get("contract")):
        text += "\n\n" + "\n".join(map(render.clean, reported))
    if rollout["analysis_runs"]:
        runs = [{**run, "gets": _gets(run, rollout)} for run in rollout["analysis_runs"]]
        text += "\n\n" + render.table(runs, _RUNS)
    if rollout.get("webhooks"):
        text += "\n\n" + render.table(rollout["webhooks"], _WEBHOOKS)
    approvals = rollout.get("approvals") or {}
    if approvals.get("given"):
        text += f"\n\n{asked(approvals)}\n\n" + render.table(approvals["given"], APPROVALS)
    return text


def _gets(run: Mapping[str, Any], rollout: Json) -> str:
    """Return what the new version got while an analysis ran."""
    if run["step_index"] is None:
        return "in the background"
    return "preview" if rollout["strategy"] == "blueGreen" else portion(rollout["steps"][run["step_index"]])


def asked(approvals: Json) -> str:
    """Return how many approvals the rollout's current step has, and how many it requires."""
    wanted = approvals["asked"]
    if wanted is None or not wanted["is_awaited"]:
        return "no approval is required now"
    given = wanted["approvals"] - wanted["missing"]
    return f"{wanted['point']} is approved by {given} of {wanted['approvals']}"


def live(rollout: Json) -> RenderableType:
    """Return a rollout's steps as they stand now, to be drawn again and again."""
    steps = Table("step", "gets", "seen", "requests", "verdict")
    runs = {run["step_index"]: run for run in rollout["analysis_runs"] if run["attempt"] == rollout["attempt"]}
    for index, step in enumerate(rollout["steps"]):
        run = runs.get(index, {})
        current = index == rollout["step_index"] and rollout["phase"] in {"Progressing", "Paused"}
        seen = rollout["weight_seen_percent"] if current else run.get("seen_percent")
        requests = rollout["seen_requests"] if current else _requests(run)
        verdict = _outcome(run)
        steps.add_row(
            f"{'>' if current else ' '} {index + 1}",
            "preview" if rollout["strategy"] == "blueGreen" else portion(step),
            render.percent(seen),
            str(requests or "-"),
            Text(verdict, style=_STYLES.get(verdict, "")),
        )
    if behind := runs.get(None):
        verdict = _outcome(behind)
        shown = render.percent(behind.get("seen_percent")), str(_requests(behind) or "-")
        steps.add_row("  all", "in the background", *shown, Text(verdict, style=_STYLES.get(verdict, "")))
    return Group(Text(f"{rollout['service']}: {line(rollout)}", style=_STYLES.get(rollout["phase"], "")), steps)


def _requests(run: Mapping[str, Any]) -> int:
    """Return how many requests an analysis run rests on, copies counted by themselves."""
    return sum((run.get("requests") or {}).values())
