"""When a weight is certain to have held."""

from typing import Any

import pytest

from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.demo.evaluation import Window
from fairlead_cli.demo.watch import WeightLog, follow


def rollout(step: int, actual: int, wanted: int, phase: str = "Progressing") -> dict[str, Any]:
    return {
        "id": 1,
        "phase": phase,
        "to_version": "2",
        "to_revision": "digits-00002",
        "step_index": step,
        "steps": [{"weight": 10}, {"weight": 50}],
        "weight_wanted": wanted,
        "weight_actual": actual,
    }


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(
            [rollout(0, 0, 10), rollout(0, 10, 10), rollout(0, 10, 10), rollout(0, 10, 10)],
            [(10, 1.5, 3.0)],
            id="from the first answer to the last question",
        ),
        pytest.param(
            [rollout(0, 10, 10), rollout(0, 10, 10), rollout(1, 10, 50), rollout(1, 50, 50), rollout(1, 50, 50)],
            [(10, 0.5, 1.0), (50, 3.5, 4.0)],
            id="not while a new weight is on its way",
        ),
        pytest.param([rollout(0, 10, 10)], [], id="seen once has no length"),
        pytest.param([rollout(0, 10, 10, "Degraded")] * 3, [], id="not after its end"),
        pytest.param([rollout(1, 10, 10)] * 3, [], id="not a weight that is not the step's"),
        pytest.param([rollout(-1, 0, 0), rollout(2, 50, 50)], [], id="not outside the steps"),
    ],
)
def test_windows(answers: list[dict[str, Any]], expected: list[tuple[int, float, float]]) -> None:
    log = WeightLog()
    for second, answer in enumerate(answers):
        log.note(answer, asked_at=float(second), answered_at=second + 0.5)

    assert log.windows == [Window(2, "digits-00002", *each) for each in expected]


def test_following_goes_on_until_the_traffic_has_moved(api: Any) -> None:
    api.on(
        "GET /rollouts/1",
        rollout(0, 10, 10),
        rollout(0, 10, 0, "Degraded"),
        rollout(0, 0, 0, "Degraded"),
    )
    drawn: list[int] = []
    with Client(Access(api.url, "")) as client:
        ended, _ = follow(client, rollout(0, 0, 0), lambda seen: drawn.append(seen["weight_actual"]), timeout_s=10)

    assert (ended["phase"], ended["weight_actual"]) == ("Degraded", 0)
    assert drawn == [10, 10, 0]
