"""Analysis plan of a rollout for people: what each step can detect, and in how many requests."""

from typing import Any

from fairlead_cli.client import Json
from fairlead_cli.output import render

_DETECTIONS: render.Columns = {
    "step": lambda row: row["step_index"] + 1,
    "weight": lambda row: render.percent(row["weight_percent"]),
    "measurement": "metric",
    "finds": lambda row: render.percent(row["regression_percent"]),
    "after requests": lambda row: "-" if row["requests"] is None else str(row["requests"]),
    "time": lambda row: "-" if row["seconds"] is None else f"{row['seconds']:.0f} s",
}


def text(plan: Json) -> str:
    """Return the plan as text."""
    head = f"A good version is failed with a probability of at most {plan['alpha']:g}; {plan['traffic']}."
    rows = [
        {**detection, "step_index": step["step_index"], "weight_percent": step["weight_percent"]}
        for step in plan["steps"]
        for detection in step["detections"]
    ]
    parts = [render.clean(head)] + ([render.table(rows, _DETECTIONS)] if rows else [])
    notes = [_note(step, warning) for step in plan["steps"] for warning in step["warnings"]]
    return "\n\n".join(parts + (["\n".join(notes)] if notes else []))


def _note(step: dict[str, Any], warning: str) -> str:
    return render.clean(f"step {step['step_index'] + 1}: {warning}")
