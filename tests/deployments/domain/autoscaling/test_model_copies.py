"""How many copies the load of a model makes, when further ones leave, and what memory allows of them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.autoscaling.model_copies import (
    CopiesMemory,
    ModelLoad,
    allotted,
    copies_json,
    decide,
    required,
    stored_copies,
)
from integrations.clusters.base import ModelTime, Sample

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)
MIB = 1 << 20


@pytest.mark.parametrize(
    ("busy", "replicas", "copies"),
    [
        ({"a": 0.2, "b": 0.2}, 8, {}),  # one copy suffices for a quarter of a second per second
        ({"a": 0.75, "b": 0.1}, 8, {"a": 3}),
        ({"a": 6.0, "b": 1.0, "c": 1.0}, 8, {"a": 8, "b": 2, "c": 2}),  # a replica's mean is 1
        ({"a": 6.0, "b": 1.0, "c": 1.0}, 2, {"a": 2}),
        ({"a": 6.0}, 1, {}),
        ({"a": 6.0}, 0, {}),
        ({}, 4, {}),
    ],
)
def test_copies_follow_the_load(busy: Mapping[str, float], replicas: int, copies: Mapping[str, int]) -> None:
    assert required({model: ModelLoad(each) for model, each in busy.items()}, replicas) == copies


@pytest.mark.parametrize(
    ("budget_mib", "copies"),
    [
        (0, {"hot": 4, "warm": 4, "small": 2}),  # no limit
        (100, {"hot": 4, "small": 2}),  # of four replicas 100 MiB
        (61, {"hot": 3, "small": 2}),
        (10, {"small": 2}),
    ],
)
def test_the_hottest_models_come_first_for_a_quarter_of_the_memory(budget_mib: int, copies: Mapping[str, int]) -> None:
    loads = {"warm": ModelLoad(2, 40 * MIB), "hot": ModelLoad(3, 30 * MIB), "small": ModelLoad(1, MIB)}
    assert allotted({"warm": 4, "hot": 4, "small": 2}, loads, 4, budget_mib * MIB) == copies


def samples(busy_s: float, *, started_at: float = 1.0, replicas: int = 4, other_s: float = 0.0) -> list[Sample]:
    models = (ModelTime("ns.hot", round(busy_s * 1e6), MIB), ModelTime("ns.other", round(other_s * 1e6), MIB))
    return [
        Sample(f"warm-00001-{number}", "warm-00001", started_at, 0, 0, 0, models=models if not number else ())
        for number in range(replicas)
    ]


def after(memory: CopiesMemory, found: list[Sample], seconds: float) -> CopiesMemory:
    decided = decide(memory, found, 0, window=WINDOW, now=NOW + timedelta(seconds=seconds))
    assert stored_copies({"copies": copies_json(decided)}) == decided
    return decided


def test_more_copies_come_at_once_and_leave_after_the_window() -> None:
    memory = after(stored_copies({}), samples(1), 0)
    assert memory.copies == {}
    assert after(memory, samples(9), 9) is memory
    memory = after(memory, samples(11), 10)
    assert memory.copies == {"ns.hot": 4}
    memory = after(memory, samples(16), 20)
    assert memory.copies == {"ns.hot": 4}
    memory = after(memory, samples(16), 310)
    assert memory.copies == {"ns.hot": 4}
    memory = after(memory, samples(16), 320)
    assert memory.copies == {"ns.hot": 2}  # as 310 s ago
    memory = after(memory, samples(16), 640)
    assert (memory.copies, memory.wanted) == ({}, {})


def test_replicas_that_go_leave_fewer_copies_at_once() -> None:
    memory = after(after(CopiesMemory(), samples(1), 0), samples(11), 10)
    assert after(memory, samples(21, replicas=2), 20).copies == {"ns.hot": 2}


def test_a_replica_that_began_again_says_nothing_until_the_next_look() -> None:
    memory = after(CopiesMemory(), samples(100), 0)
    memory = after(memory, samples(20, started_at=2.0), 10)
    assert memory.copies == {}
    assert after(memory, samples(30, started_at=2.0), 20).copies == {"ns.hot": 4}


def test_a_model_that_was_away_from_the_page_counts_from_its_return() -> None:
    memory = after(CopiesMemory(), samples(0, other_s=8), 0)
    assert after(memory, samples(7.1, other_s=3), 10).copies == {"ns.hot": 3, "ns.other": 2}
