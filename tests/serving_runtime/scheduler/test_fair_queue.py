"""Callers take turns: nothing is lost, a caller's items keep their order, no caller waits for ever, bounds hold."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from serving_runtime.scheduler.fair_queue import OWN_LANES, SHARED, SHARED_LANES, FairQueue


@dataclass(eq=False)
class Entry:
    """A waiting item; `sender` stays where `caller` becomes that of the shared lane."""

    caller: bytes
    number: int
    rows: int = 1
    waiting: bool = True

    def __post_init__(self) -> None:
        self.sender = self.caller


def entries(callers: str, rows: int = 1) -> list[Entry]:
    return [Entry(name.encode(), number, rows) for number, name in enumerate(callers)]


def filled(waiting: list[Entry], queue: FairQueue[Entry] | None = None) -> FairQueue[Entry]:
    queue = queue if queue is not None else FairQueue()
    for entry in waiting:
        queue.push(entry)
    return queue


def callers(taken: list[Entry]) -> str:
    return b"".join(entry.sender for entry in taken).decode()


def test_one_caller_is_first_in_first_out() -> None:
    waiting = entries("aaaa")
    queue = filled(waiting)
    assert list(queue) == waiting
    assert queue.pop(1) + queue.pop(2) + queue.pop(5) == waiting
    assert queue.pop(1) == []


def test_callers_with_one_item_each_keep_the_order_of_arrival() -> None:
    assert callers(filled(entries("cabed")).pop(9)) == "cabed"


def test_a_caller_behind_a_long_queue_is_next_but_one() -> None:
    queue = filled(entries("gggggggg"))
    assert callers(queue.pop(2)) == "gg"
    polite = Entry(b"p", 0)
    queue.push(polite)
    assert callers(queue.pop(3)) == "pgg"


def test_a_caller_who_returns_at_once_takes_every_second_turn_and_no_more() -> None:
    queue = filled(entries("g" * 20 + "p"))
    served = ""
    for number in range(12):
        served += callers(queue.pop(1))
        if served[-1] == "p":
            queue.push(Entry(b"p", number))
    assert served == "gp" * 6


def test_silence_saves_no_turns_up() -> None:
    queue = filled(entries("a" * 20 + "b"))
    queue.pop(12)  # b's turns pass
    for number in range(5):
        queue.push(Entry(b"b", number))
    assert callers(queue.pop(6)) == "bababa"


def test_a_turn_costs_its_rows() -> None:
    queue = filled([Entry(b"a", number, rows=8) for number in range(3)] + [Entry(b"b", number) for number in range(24)])
    rows: Counter[bytes] = Counter()
    for entry in queue.pop(18):
        rows[entry.caller] += entry.rows
    assert rows == {b"a": 16, b"b": 16}


def test_callers_beyond_the_limit_share_lanes() -> None:
    names = [str(number).encode() for number in range(1000)]
    queue = filled([Entry(name, 0) for name in names], FairQueue(4, 2))
    assert len(queue._lanes) == 6
    again = Entry(names[0], 1)
    queue.push(again)
    taken = queue.pop(12)
    assert again in taken
    shared = [entry for entry in taken if entry.caller.startswith(SHARED)]
    assert len(shared) == 12 - 5
    assert len({entry.caller for entry in shared}) == 2


def test_invented_callers_make_others_wait_about_as_long_as_first_in_first_out_would() -> None:
    count = 10_000
    queue = filled([Entry(b"invented %d" % number, number) for number in range(count)])
    polite = Entry(b"polite", 0)
    queue.push(polite)
    for services in range(2 * count):
        if polite in queue.pop(1):
            break
        queue.push(Entry(b"later %d" % services, 0))
        assert len(queue._lanes) <= OWN_LANES + SHARED_LANES
    else:
        pytest.fail("the caller waits for twice the requests that were there before its own")


def test_lanes_of_callers_who_left_are_forgotten() -> None:
    queue = filled(entries("aaaaaaaabcdefg"))
    queue.pop(10)
    assert list(queue._lanes) == []
    assert queue.longest == 4


def test_the_newest_of_the_longest_queue_leaves() -> None:
    waiting = entries("abbbabc")
    queue = filled(waiting)
    queue.discard(waiting[5])
    assert (queue.longest, queue.size_of(b"b"), queue.size_of(b"a"), queue.size_of(b"z")) == (3, 3, 2, 0)
    assert queue.pop_newest() is waiting[3]
    assert queue.size_of(b"b") == 2


CALLERS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])


class Model(RuleBasedStateMachine):
    """Random arrivals, departures and services, beside the same items in plain lists."""

    OWN, SHARED = 2, 2

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[Entry] = FairQueue(self.OWN, self.SHARED)
        self.waiting: list[Entry] = []
        self.number = 0

    @rule(caller=CALLERS, rows=st.integers(1, 9))
    def push(self, caller: bytes, rows: int) -> None:
        self.number += 1
        entry = Entry(caller, self.number, rows)
        self.queue.push(entry)
        self.waiting.append(entry)

    @rule(count=st.integers(1, 4))
    def pop(self, count: int) -> None:
        shown = list(self.queue)[:count]
        taken = self.queue.pop(count)
        assert taken == shown, "a loop shows the order in which items leave"
        assert len(taken) == min(count, len(self.waiting))
        for entry in taken:
            older = [each for each in self.waiting if each.caller == entry.caller and each.number < entry.number]
            assert not older, "first in, first out within a lane"
            self.waiting.remove(entry)
            entry.waiting = False

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(entry)
        self.queue.discard(entry)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(entry)
        self.queue.remove(entry)

    @precondition(lambda self: self.waiting)
    @rule()
    def pop_newest(self) -> None:
        sizes = Counter(entry.caller for entry in self.waiting)
        entry = self.queue.pop_newest()
        assert sizes[entry.caller] == max(sizes.values())
        assert not [each for each in self.waiting if each.caller == entry.caller and each.number > entry.number]
        self.waiting.remove(entry)

    @invariant()
    def nothing_is_lost(self) -> None:
        shown = list(self.queue)
        assert len(shown) == len(self.waiting)
        assert set(map(id, shown)) == set(map(id, self.waiting))

    @invariant()
    def sizes_are_right(self) -> None:
        sizes = Counter(entry.caller for entry in self.waiting)
        assert self.queue.longest == max(sizes.values(), default=0)
        for caller, size in sizes.items():
            assert self.queue.size_of(caller) == size

    @invariant()
    def callers_are_bounded(self) -> None:
        assert len(self.queue._lanes) == len(self.queue._order) <= self.OWN + self.SHARED
        assert self.queue._shells <= self.number


TestModel = Model.TestCase


@given(
    st.lists(st.tuples(CALLERS, st.booleans()), min_size=1, max_size=60),
    st.lists(CALLERS, max_size=20),
)
def test_no_waiting_caller_misses_a_round(events: list[tuple[bytes, bool]], more: list[bytes]) -> None:
    """Each caller with a waiting item is served once among any as many services as there are callers, and one more."""
    queue: FairQueue[Entry] = FairQueue()
    waiting: Counter[bytes] = Counter()
    passed: Counter[bytes] = Counter()
    for number, (caller, serve) in enumerate([*events, *((caller, False) for caller in more), *[(b"a", True)] * 80]):
        if not serve or (number < len(events) and not waiting.total()):
            queue.push(Entry(caller, number))
            waiting[caller] += 1
            continue
        for entry in queue.pop(1):
            waiting[entry.caller] -= 1
            passed[entry.caller] = 0
            for other, count in waiting.items():
                if count and other != entry.caller:
                    passed[other] += 1
                    assert passed[other] <= 5, "5 callers"
                elif not count:
                    passed[other] = 0
    assert waiting.total() == 0


@given(st.lists(st.integers(1, 8), min_size=30, max_size=30), st.integers(1, 8))
def test_two_callers_who_always_wait_get_the_same_rows_but_for_one_request_each(rows: list[int], other: int) -> None:
    queue = filled(
        [Entry(b"a", number, size) for number, size in enumerate(rows)]
        + [Entry(b"b", number, other) for number in range(250)]
    )
    served: Counter[bytes] = Counter()
    while queue.size_of(b"a") and queue.size_of(b"b"):
        (entry,) = queue.pop(1)
        served[entry.caller] += entry.rows
        assert abs(served[b"a"] - served[b"b"]) <= max(rows) + other


@pytest.mark.parametrize("count", [1, 7, 100])
def test_a_forged_caller_for_each_request_costs_bounded_memory(count: int) -> None:
    queue: FairQueue[Entry] = FairQueue(4, 5)
    for number in range(2000):
        queue.push(Entry(str(number).encode(), number))
        if number % 3 == 0:
            queue.pop(count)
        assert len(queue._lanes) <= 9
        assert len(queue._by_size) <= 11
