"""Figures of a model pool from pages of its replicas."""

import pytest

from pools.domain.figures import PoolFigures, figures, slowest
from serving_runtime.pools.metrics import MOST_SLOWEST, PoolCounts
from tests.pools._support.pages import counts, page

EMPTY = PoolFigures()


def test_replicas_are_summed_and_copies_of_a_model_counted() -> None:
    first, second = counts(100, 10, *[0.01] * 9, 2.0, of="vision.digits@2"), counts(50, 0)
    first.failed("corrupt")
    first.evictions = 4
    found = figures(
        [
            page(first, {("vision.digits", "2"): 300, ("vision.faces", "1"): 500}, waiting=3),
            page(second, {("vision.digits", "2"): 300}),
        ]
    )
    assert (found.hits, found.misses, found.loads, found.evictions, found.waiting) == (140, 10, 10, 4, 3)
    assert found.hit_percent == pytest.approx(93.3, abs=0.1)
    assert (found.memory_bytes, found.memory_limit_bytes, found.loaded_models) == (1100, 2000, 3)
    assert found.load_failures == {"corrupt": 1}
    assert found.load_p99_ms is not None
    assert 2000 <= found.load_p99_ms < 3000
    assert [(each.namespace, each.service, each.version, each.memory_bytes, each.copies) for each in found.models] == [
        ("vision", "digits", "2", 600, 2),
        ("vision", "faces", "1", 500, 1),
    ]
    assert [each.requests for each in found.models] == [14, 7]


def test_a_pool_without_requests_has_no_shares() -> None:
    found = figures([page(counts(0, 0), {})])
    assert (found.hit_percent, found.load_p99_ms, list(found.models)) == (None, None, [])
    assert figures([]) == EMPTY


def test_what_a_model_calls_itself_is_no_row() -> None:
    """Pages have rows of hostile models' own metrics; only the runtime's are read."""
    hostile = 'evil{model="vision.digits",version="2"} 9\nfairlead_model_memory_bytes{model="odd",version="1"} 5\n'
    assert list(figures([hostile]).models) == []


def test_the_slowest_loads_come_first() -> None:
    counted = PoolCounts()
    for number in range(MOST_SLOWEST + 5):
        counted.loaded(f"a.m{number}@1", number / 1000)
    counted.loaded("a.m24@1", 0.001)  # its longest load stays
    found = figures([page(counted, {})])
    assert len(found.models) == MOST_SLOWEST
    assert [(each.service, each.load_ms) for each in slowest(found.models, 2)] == [("m24", 24.0), ("m23", 23.0)]
