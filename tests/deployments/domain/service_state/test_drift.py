from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.service_state.drift import REMEMBERED, Shown, note, sentence, stored, to_json
from integrations.clusters.base import Drift

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEFT = Drift("Service/digits-00001", "spec.type", '"ClusterIP"', '"NodePort"', "kubectl-edit", 1767225000.0)
HEALED = replace(LEFT, healed=True)


def later(before: tuple[Shown, ...], *found: Drift, seconds: float) -> tuple[tuple[Shown, ...], list[str]]:
    shown, lines = note(before, found, NOW + timedelta(seconds=seconds))
    return shown, [str(line.kind) for line in lines]


def test_what_is_left_is_told_once_and_shown_until_it_is_gone() -> None:
    shown, told = later((), LEFT, seconds=0)
    assert told == ["DriftFound"]
    assert later(shown, LEFT, seconds=2) == (shown, [])
    assert later(shown, seconds=4) == ((), ["DriftGone"])


def test_what_was_changed_once_more_is_told_where_it_was_another_hand() -> None:
    shown, _ = later((), LEFT, seconds=0)
    shown, told = later(shown, replace(LEFT, found='"LoadBalancer"'), seconds=2)
    assert (shown[0].drift.found, told) == ('"LoadBalancer"', [])
    assert later(shown, replace(LEFT, manager="helm"), seconds=4)[1] == ["DriftFound"]


def test_somebody_who_keeps_changing_what_is_put_back_is_told_of_once_and_counted() -> None:
    shown, told = later((), HEALED, seconds=0)
    assert told == ["DriftHealed"]
    for turn in range(1, 4):
        shown, told = later(shown, HEALED, seconds=turn)
        assert told == []
    assert shown[0].times == 4
    assert later(shown, seconds=60) == (shown, [])
    assert later(shown, seconds=4 + REMEMBERED.total_seconds()) == ((), [])


def test_it_is_kept_as_it_is() -> None:
    shown, _ = later((), LEFT, HEALED, seconds=0)
    assert stored(to_json(shown)) == shown


@pytest.mark.parametrize(
    ("drift", "said"),
    [
        pytest.param(LEFT, 'spec.type of Service/digits-00001 is "NodePort", not', id="changed"),
        pytest.param(LEFT, "changed by kubectl-edit; it is left so", id="by whom"),
        pytest.param(replace(HEALED, found=""), 'was taken away, "ClusterIP" is wanted', id="taken away"),
        pytest.param(replace(HEALED, path="", manager=""), "is not there any more; it was created again", id="deleted"),
    ],
)
def test_it_is_told_in_one_sentence(drift: Drift, said: str) -> None:
    assert said in sentence(drift)
