"""The order in which loaded models leave."""

import pytest

from serving_runtime.engine.memory.least_recently_used import LeastRecentlyUsed


class Loaded:
    """Models with their last use, and how often it was read."""

    def __init__(self, count: int) -> None:
        self.used = {f"m{number}": number for number in range(count)}
        self.busy: set[str] = set()
        self.pinned: set[str] = set()
        self.reads = 0
        self.order = LeastRecentlyUsed(self.last_used_ms, lambda name: name not in self.busy, self.pinned.__contains__)
        for name in self.used:
            self.order.add(name)

    def last_used_ms(self, name: str) -> int:
        self.reads += 1
        return self.used[name]

    def leave(self) -> str | None:
        name = self.order.first()
        if name is not None:
            self.order.discard(name)
        return name


def test_the_least_recently_used_leaves_first_also_where_it_was_used_since() -> None:
    loaded = Loaded(4)
    loaded.used["m0"] = 10
    loaded.used["m1"] = 9
    assert [loaded.leave() for _ in range(5)] == ["m2", "m3", "m1", "m0", None]


def test_busy_ones_are_passed_over_and_come_back() -> None:
    loaded = Loaded(3)
    loaded.busy.add("m0")
    assert loaded.leave() == "m1"
    loaded.busy.clear()
    assert loaded.leave() == "m0"


def test_pinned_ones_stay_until_they_are_added_again() -> None:
    loaded = Loaded(2)
    loaded.pinned.add("m0")
    assert [loaded.leave(), loaded.leave()] == ["m1", None]
    loaded.pinned.clear()
    assert loaded.leave() is None
    loaded.order.add("m0")
    assert loaded.leave() == "m0"


def test_one_that_is_loaded_again_is_there_once() -> None:
    loaded = Loaded(2)
    for moment in range(100):
        loaded.used["m1"] = moment
        loaded.order.add("m1")
    assert len(loaded.order) == 2
    assert [loaded.leave() for _ in range(3)] == ["m0", "m1", None]


@pytest.mark.parametrize("count", [100, 10_000])
def test_an_eviction_does_not_look_at_every_model(count: int) -> None:
    loaded = Loaded(count)
    loaded.reads = 0
    for number in range(50):  # each time one leaves, one comes, and a few are used
        assert loaded.leave() is not None
        loaded.used[f"new{number}"] = count + number
        loaded.order.add(f"new{number}")
        loaded.used[f"m{number + 50}"] = count + number
    assert loaded.reads < 400
