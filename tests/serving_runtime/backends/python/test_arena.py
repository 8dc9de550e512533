"""Shared memory between two sides: regions are placed, looked at, released and used again."""

import os

import numpy as np

from serving_runtime.backends.python.wire.arena import Arena, Window


def sides() -> tuple[Arena, Window]:
    fd = os.memfd_create("test")
    return Arena(os.dup(fd)), Window(fd)


def test_what_is_written_on_one_side_is_seen_on_the_other_and_kept_while_it_grows() -> None:
    arena, window = sides()
    kept = []
    for number in range(1, 6):
        start, region = arena.place(1 << 20)
        region[:] = bytes([number]) * len(region)
        kept.append(window.view(start, len(region)))
        del region
    assert [np.unique(array).tolist() for array in kept] == [[1], [2], [3], [4], [5]]
    del kept
    arena.close()
    window.close()


def test_a_region_is_released_with_its_last_view_and_then_used_again() -> None:
    arena, window = sides()
    start, _ = arena.place(1000)
    array = window.view(start, 1000)
    row = array[:8].view(np.float64).reshape(1, 1)
    del array
    assert not window.released
    del row
    assert list(window.released) == [start]
    arena.free(window.released.popleft())
    assert arena.taken_bytes == 0
    assert arena.place(1000)[0] == start
    arena.close()
    window.close()


def test_neighbours_that_are_free_become_one() -> None:
    arena, window = sides()
    quarter = 1 << 18
    starts = [arena.place(quarter)[0] for _ in range(4)]
    assert starts == [0, quarter, 2 * quarter, 3 * quarter]
    for start in (starts[2], starts[0], starts[1]):
        arena.free(start)
    assert arena.place(3 * quarter)[0] == 0
    arena.close()
    window.close()
