"""Rollout watch: follows one rollout through the API and records when each weight is certain to have held."""

import time
from collections.abc import Callable
from dataclasses import replace

from fairlead_cli.client import Client, Json, path
from fairlead_cli.demo.evaluation import Window
from fairlead_cli.output.waiting import poll_until

_LOOK_EVERY_S = 0.2
ENDED = frozenset({"Healthy", "Degraded", "Aborted"})


class WeightLog:
    """Collects the windows of one rollout, one per step that was seen."""

    def __init__(self) -> None:
        self._windows: dict[int, Window] = {}

    @property
    def windows(self) -> list[Window]:
        """The windows so far, in the order of steps; those seen only once have no length and are left out."""
        return [each for _, each in sorted(self._windows.items()) if each.ended_at > each.started_at]

    def note(self, rollout: Json, asked_at: float, answered_at: float) -> None:
        """Record one answer of the API.

        A new weight is recorded before it is applied and counts as actual once the gateway confirmed it. So the old
        weight surely still held when the request was sent, and the weight surely holds when the answer has come.
        """
        weight = rollout["weight_actual"]
        index = rollout["step_index"]
        settled = rollout["phase"] == "Progressing" and weight == rollout["weight_wanted"]
        if not settled or not 0 <= index < len(rollout["steps"]) or weight != rollout["steps"][index]["weight"]:
            return
        if index in self._windows:
            self._windows[index] = replace(self._windows[index], ended_at=asked_at)
        else:
            version = int(rollout["to_version"])
            self._windows[index] = Window(version, rollout["to_revision"], weight, answered_at, answered_at)


def follow(
    client: Client, rollout: Json, draw: Callable[[Json], None], *, timeout_s: float
) -> tuple[Json, list[Window]]:
    """Return the rollout at its end and its windows; `draw` receives every state on the way."""
    weights = WeightLog()

    def look() -> Json:
        asked_at = time.time()
        seen = client.get(path("rollouts", rollout["id"]))
        weights.note(seen, asked_at, time.time())
        draw(seen)
        return seen

    def ended(seen: Json) -> bool:
        # An ended rollout still moves its traffic: the end is when the gateway has done so.
        return seen["phase"] in ENDED and seen["weight_actual"] == seen["weight_wanted"]

    what = f"the end of the rollout of version {rollout['to_version']}"
    return poll_until(look, ended, timeout_s=timeout_s, every_s=_LOOK_EVERY_S, what=what), weights.windows
