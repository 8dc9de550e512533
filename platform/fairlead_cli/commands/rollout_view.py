"""A rollout for people: as one line, as text, as a live table."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead_cli import render
from fairlead_cli.client import Json

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
    "phase": "phase",
    "reason": "reason.message",
    "started": "started_at",
    "ended": "finished_at",
    "by": "created_by",
}
_RUNS: render.Columns = {
    "weight": lambda row: render.percent(row["weight_percent"]),
    "seen": lambda row: render.percent(row.get("seen_percent")),
    "requests": lambda row: sum((row.get("requests") or {}).values()) or "-",
    "verdict": "verdict",
    "message": "message",
}


def line(rollout: Json) -> str:
    """Return where a rollout is in one line."""
    weight = f"{rollout['weight_actual']} % of {rollout['weight_wanted']} %"
    if rollout["weight_actual"] == rollout["weight_wanted"]:
        weight = f"{rollout['weight_actual']} %"
    return f"{rollout['phase']}, version {rollout['to_version']} at {weight}: {rollout['reason']['message']}"


def as_text(rollout: Json) -> str:
    """Return all that is known of a rollout."""
    text = render.facts(rollout, _FACTS)
    if rollout["analysis_runs"]:
        text += "\n\n" + render.table(rollout["analysis_runs"], _RUNS)
    return text


def live(rollout: Json) -> RenderableType:
    """Return a rollout's steps as they stand now, to be drawn again and again."""
    steps = Table("step", "weight", "seen", "requests", "verdict")
    runs = {run["step_index"]: run for run in rollout["analysis_runs"]}
    for index, step in enumerate(rollout["steps"]):
        run = runs.get(index, {})
        current = index == rollout["step_index"] and rollout["phase"] in {"Progressing", "Paused"}
        seen = rollout["weight_seen_percent"] if current else run.get("seen_percent")
        requests = rollout["seen_requests"] if current else sum((run.get("requests") or {}).values())
        verdict = run.get("verdict", "-")
        steps.add_row(
            f"{'>' if current else ' '} {index + 1}",
            render.percent(step["weight"]),
            render.percent(seen),
            str(requests or "-"),
            Text(verdict, style=_STYLES.get(verdict, "")),
        )
    return Group(Text(f"{rollout['service']}: {line(rollout)}", style=_STYLES.get(rollout["phase"], "")), steps)
