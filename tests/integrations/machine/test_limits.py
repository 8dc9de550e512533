"""Which limits are close, and what is said of them."""

import pytest

from integrations.machine.limits import (
    INSTANCES,
    MEMORY,
    NAMES,
    OPEN_FILES,
    PROCESSES,
    Level,
    Limit,
    before_start,
    noted,
    rose,
    tightest,
)

GIB = 1 << 30


def limit(used: int | None, most: int | None = 100, name: str = PROCESSES) -> Limit:
    return Limit(name, used, most, "this machine", "nothing can be started", "end some")


@pytest.mark.parametrize(
    ("used", "most", "level"),
    [
        pytest.param(79, 100, Level.FINE, id="below 80 %"),
        pytest.param(80, 100, Level.CLOSE, id="80 %"),
        pytest.param(94, 100, Level.CLOSE, id="below 95 %"),
        pytest.param(95, 100, Level.AT_LIMIT, id="95 %"),
        pytest.param(120, 100, Level.AT_LIMIT, id="a limit that was lowered"),
        pytest.param(0, 0, Level.AT_LIMIT, id="a limit of nothing"),
        pytest.param(None, 100, Level.UNKNOWN, id="the use cannot be read"),
        pytest.param(5, None, Level.UNKNOWN, id="the limit cannot be read"),
    ],
)
def test_how_close_a_limit_is(used: int | None, most: int | None, level: Level) -> None:
    found = limit(used, most)
    assert found.level is level
    assert bool(found.sentence) == (level in (Level.CLOSE, Level.AT_LIMIT))


def test_what_is_said_of_a_running_platform() -> None:
    said = "this machine uses 30,000 of 32,768 processes; at the limit nothing can be started; end some"
    assert limit(30_000, 32_768).sentence == said
    said = "this machine uses 7.6 GiB of 8.0 GiB of memory; at the limit nothing can be started; end some"
    assert limit(int(7.6 * GIB), 8 * GIB, MEMORY).sentence == said


def test_before_a_start_what_it_takes_counts_with_that_of_the_services() -> None:
    [fine] = before_start([limit(5, 64, OPEN_FILES)], services=0)
    [close] = before_start([limit(5, 64, OPEN_FILES)], services=10)
    assert (fine.level, fine.needed) == (Level.FINE, 30)
    assert (close.level, close.needed) == (Level.CLOSE, 50)
    assert close.sentence.startswith("the platform takes 50 open files to start, and this machine uses 5 of 64; at the")
    [others] = before_start([limit(5, 64, INSTANCES)], services=10)
    assert (others.level, others.needed) == (Level.FINE, 0), "the platform watches no files"


def test_of_several_limits_of_a_kind_the_closest_is_shown_and_what_is_not_known_is_said() -> None:
    machine, user = limit(50, 1000), limit(50, 100)
    found = tightest([machine, user, limit(None)])
    assert [each.name for each in found] == list(NAMES)
    assert found[NAMES.index(PROCESSES)] == user
    assert {each.level for each in found if each.name != PROCESSES} == {Level.UNKNOWN}


def test_a_limit_that_starts_close_is_not_hidden_by_one_that_is_used_more_now() -> None:
    small, large = limit(1, 100, OPEN_FILES), limit(500, 10_000, OPEN_FILES)
    assert tightest(before_start([small, large], services=30))[0].most == 100


@pytest.mark.parametrize(
    ("readings", "events"),
    [
        pytest.param([10, 85, 96], [85, 96], id="it comes closer"),
        pytest.param([85, 79, 85, 79, 85], [85], id="it wavers at 80 %"),
        pytest.param([85, 69, 85], [85, 85], id="it was calm between"),
        pytest.param([96, 85, 96], [96], id="it wavers at 95 %"),
        pytest.param([85, None, 85], [85], id="it could not be read between"),
        pytest.param([10, None, 10], [], id="nothing is close"),
    ],
)
def test_an_event_is_due_once_for_each_level(readings: list[int | None], events: list[int]) -> None:
    last, due = "", []
    for used in readings:
        after = noted(last, limit(used))
        if rose(last, after):
            due.append(used)
        last = after
    assert due == events
