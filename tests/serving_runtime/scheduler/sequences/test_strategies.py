"""Who of an instance's sequences runs next, and in which row, as tables; time is an argument."""

import pytest

from serving_runtime.config.batching import BatchPolicy
from serving_runtime.scheduler.sequences.sequence import Lane, LiveSequence, SequenceJob, next_free, sort_idle
from serving_runtime.scheduler.sequences.strategies import direct, oldest

pytestmark = pytest.mark.feature("C9")


def sequence(name: str, arrived_us: int | None = None, *, shape: str = "", running: bool = False) -> LiveSequence:
    """Return a sequence with one waiting request, or none."""
    made = LiveSequence(name)
    made.running = running
    if arrived_us is not None:
        made.jobs.append(SequenceJob([], 1, shape, lambda _result: None, arrived_us * 1000))
    return made


def ready(slots: list[LiveSequence | None]) -> list[LiveSequence]:
    """Return the sequences that can run, each told where it sits."""
    for slot, sitting in enumerate(slots):
        if sitting is not None:
            sitting.slot = slot
    return [sitting for sitting in slots if sitting is not None and sitting.ready]


def names(rows: list[LiveSequence | None]) -> list[str]:
    return [str(row.correlation_id) if row is not None else "-" for row in rows]


A, B, C = (sequence(name, arrived) for name, arrived in (("a", 0), ("b", 10), ("c", 20)))
SILENT, RUNNING = sequence("silent"), sequence("running", 0, running=True)
WIDE = sequence("wide", 5, shape="wide")


@pytest.mark.parametrize(
    ("slots", "now_us", "delay_us", "utilization", "rows", "wait_us"),
    [
        pytest.param([None, SILENT, RUNNING], 0, 0, 0.0, "", 0, id="nothing to run"),
        pytest.param([A, B, None, None], 50, 0, 0.0, "ab", 0, id="all that is ready leaves together"),
        pytest.param([B, None, SILENT, A, None], 50, 0, 0.0, "b--a", 0, id="rows are slots, none behind the last"),
        pytest.param([A, RUNNING, B], 50, 0, 0.0, "a-b", 0, id="one request of a sequence at a time"),
        pytest.param([WIDE, A, B], 50, 0, 0.0, "-ab", 0, id="another shape than the oldest waits"),
        pytest.param([WIDE, B], 50, 0, 0.0, "w", 0, id="the oldest decides on the shape"),
        pytest.param([A, None, None, None], 50, 100, 0.5, "", 50, id="too few slots: waits for the rest of the delay"),
        pytest.param([A, B, None, None], 50, 100, 0.5, "ab", 0, id="enough slots leave at once"),
        pytest.param([A, None, None, None], 100, 100, 0.5, "a", 0, id="after the delay any number leaves"),
        pytest.param([A, None, None, None], 50, 100, 0.0, "a", 0, id="no utilization asked: one is enough"),
        pytest.param([A, B, C, SILENT], 50, 100, 1.0, "", 50, id="all slots asked"),
    ],
)  # fmt: skip
def test_the_direct_strategy(
    slots: list[LiveSequence | None], now_us: int, delay_us: int, utilization: float, rows: str, wait_us: int
) -> None:
    found, wait = direct(ready(slots), len(slots), now_us * 1000, max_delay_us=delay_us, utilization=utilization)
    assert "".join(name[0] for name in names(found)) == rows
    assert wait == wait_us


@pytest.mark.parametrize(
    ("slots", "now_us", "limit", "preferred", "delay_us", "rows", "wait_us"),
    [
        pytest.param([None, SILENT, RUNNING], 0, 4, (), 0, "", 0, id="nothing to run"),
        pytest.param([C, None, A, SILENT, B], 50, 4, (), 0, "abc", 0, id="oldest request first, no row stays empty"),
        pytest.param([C, A, B], 50, 2, (), 0, "ab", 0, id="at most the batch size"),
        pytest.param([C, A, B], 50, 4, (2,), 0, "ab", 0, id="a preferred size"),
        pytest.param([A, B], 50, 4, (3,), 100, "", 50, id="waits for a preferred size"),
        pytest.param([A, B], 100, 4, (3,), 100, "ab", 0, id="but not for longer than the delay"),
        pytest.param([A, WIDE, B], 50, 4, (), 100, "a", 0, id="nobody can join over another shape: no waiting"),
    ],
)
def test_the_oldest_strategy(
    slots: list[LiveSequence | None],
    now_us: int,
    limit: int,
    preferred: tuple[int, ...],
    delay_us: int,
    rows: str,
    wait_us: int,
) -> None:
    policy = BatchPolicy(limit, frozenset(preferred), delay_us, 0, 0, {})
    found, wait = oldest(ready(slots), now_us * 1000, policy)
    assert "".join(name[0] for name in names(found)) == rows
    assert wait == wait_us


def lane(number: int, taken: str) -> Lane:
    made = Lane(number, len(taken), None)  # type: ignore[arg-type]
    made.free = [number for number, slot in enumerate(taken) if slot == "_"]
    return made


@pytest.mark.parametrize(
    ("taken", "place"),
    [
        pytest.param(["__", "__"], (0, 0), id="all free: the first"),
        pytest.param(["x_", "__"], (1, 0), id="instances share the load"),
        pytest.param(["x_", "x_"], (0, 1), id="then the next slot"),
        pytest.param(["xx", "x_"], (1, 1), id="wherever one is free"),
        pytest.param(["_x", "x_"], (0, 0), id="the lowest slot of all"),
        pytest.param(["xx", "xx"], None, id="none: the backlog"),
    ],
)
def test_the_next_sequence_gets_the_lowest_free_slot(taken: list[str], place: tuple[int, int] | None) -> None:
    found = next_free([lane(number, slots) for number, slots in enumerate(taken)])
    assert (found and (found.number, found.free[0])) == place


def used(name: str, used_ns: int, *, waits: bool = False) -> LiveSequence:
    made = sequence(name, 0 if waits else None)
    made.used_ns = used_ns
    return made


@pytest.mark.parametrize(
    ("sequences", "expired", "next_ns"),
    [
        pytest.param([], "", None, id="none"),
        pytest.param([used("a", 0), used("b", 50)], "a", 150, id="one is over, the other's time comes"),
        pytest.param([used("a", 0, waits=True)], "", 200, id="one that waits for its turn is not idle"),
        pytest.param([used("a", 90), used("b", 80)], "", 180, id="the earliest is looked at next"),
    ],
)
def test_sequences_without_requests_are_idle(sequences: list[LiveSequence], expired: str, next_ns: int | None) -> None:
    found, due_ns = sort_idle(sequences, 100, 100)
    assert "".join(str(one.correlation_id) for one in found) == expired
    assert due_ns == next_ns
