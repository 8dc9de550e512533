"""`fairlead rollouts comparison`: how a shadow's answers differ from stable's."""

from fairlead_cli.client import Json, path
from fairlead_cli.commands.rollouts import find
from fairlead_cli.context import Call
from fairlead_cli.output import render

_OUTPUTS: render.Columns = {
    "output": "name",
    "datatype": "datatype",
    "answers": lambda row: ", ".join(f"{count} {kind}" for kind, count in row["kinds"].items()),
    "largest difference": lambda row: _largest(row["absolute"]),
    "relative": lambda row: _largest(row["relative"]),
    "best class changed": lambda row: f"{row['flips']} of {row['rankings']}" if row["rankings"] else "-",
}
_WORST: render.Columns = {"request": "request_id", "at": "at", "what differs": "message"}


def comparison(call: Call) -> None:
    """Shows how a shadow's answers differ from stable's: matches, size of differences, worst requests."""
    rollout = find(call)
    found = call.client.get(path("rollouts", rollout["id"], "comparison"))
    if call.as_json:
        call.show(found, {})
        return
    steps = found["steps"]
    if not steps:
        print(f"rollout {rollout['id']} of {rollout['service']} has compared no answers; its policy has to ask for it")
    print("\n\n".join(_step(step) for step in steps))


def _step(step: Json) -> str:
    found = step["measurement"]
    parts = [render.clean(f"step {step['step_index'] + 1}, {found['verdict']}: {found['message']}")]
    if step["outputs"]:
        parts.append(render.table(step["outputs"], _OUTPUTS))
    if step["worst"]:
        parts.append(render.table(step["worst"], _WORST))
    return "\n\n".join(parts)


def _largest(spread: Json | None) -> str:
    if spread is None:
        return "-"
    return "not a number" if spread["sizeless"] else f"{spread['largest']:.3g}"
