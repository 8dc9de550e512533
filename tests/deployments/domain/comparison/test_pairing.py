from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployments.domain.comparison.pairing import MOST_WAITING, MOST_WAITING_BYTES, WAITS_S, Waiting, alone, join
from deployments.domain.comparison.stored import stored_waiting, waiting_bytes
from integrations.clusters.base import Exchange

STABLE, SHADOW = "digits-00001", "digits-00002"


def half(request_id, revision=STABLE, at=0.0, data=(1.0,)):
    request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(data)], "data": list(data)}]}
    return Exchange(request_id, revision, "1", at, request, {"outputs": []})


def joined(*batches, waiting=None):
    waiting, pairs = waiting or Waiting(), []
    for batch in batches:
        waiting, more = join(waiting, batch, stable=STABLE, shadow=SHADOW)
        pairs += more
    return waiting, [(pair.stable.at, pair.shadow.at, pair.stable.request_id) for pair in pairs]


def test_halves_of_one_batch_are_paired_by_their_id():
    waiting, pairs = joined([half("b", SHADOW, 4), half("a", at=1), half("b", at=2), half("a", SHADOW, 3)])
    assert pairs == [(1, 3, "a"), (2, 4, "b")]
    assert alone(waiting) == {"stable": 0, "shadow": 0}


@pytest.mark.parametrize("first", [STABLE, SHADOW])
def test_a_half_that_comes_later_finds_the_one_that_waits(first):
    second = SHADOW if first == STABLE else STABLE
    waiting, pairs = joined([half("a", first)], [], [half("a", second)])
    assert [each[2] for each in pairs] == ["a"]
    assert alone(waiting) == {"stable": 0, "shadow": 0}


def test_a_half_whose_time_is_over_is_counted_as_alone():
    waiting, pairs = joined([half("a", at=0)], [half("b", at=WAITS_S + 1)], [half("a", SHADOW, WAITS_S + 2)])
    assert not pairs
    assert (waiting.stable_alone, [each.request_id for each in waiting.stable]) == (1, ["b"])
    assert alone(waiting) == {"stable": 2, "shadow": 1}


def test_time_in_which_nothing_is_recorded_gives_nothing_up():
    _, pairs = joined([half("a", at=0)], *[[]] * 100, [half("a", SHADOW, 1)])
    assert len(pairs) == 1


def test_an_id_that_a_client_gives_twice_is_paired_in_order():
    _, pairs = joined([half("a", at=1), half("a", at=2), half("a", SHADOW, 4)], [half("a", SHADOW, 5)])
    assert pairs == [(1, 4, "a"), (2, 5, "a")]


def test_a_share_is_copied_and_the_rest_of_stable_waits_in_bounded_memory():
    batches = [[half(f"{batch}.{number}", at=batch) for number in range(200)] for batch in range(10)]
    waiting, _ = joined(*batches)
    assert len(waiting.stable) == MOST_WAITING
    assert alone(waiting)["stable"] == 2000
    assert waiting.stable[-1].at == 9


def test_large_bodies_wait_in_fewer_numbers():
    waiting, _ = joined([half(f"{number}", at=number, data=[0.5] * 100_000) for number in range(10)])
    assert len(waiting.stable) == 3
    assert len(waiting_bytes(waiting)) < MOST_WAITING_BYTES


def test_other_revisions_and_requests_without_an_id_are_left_out():
    waiting, pairs = joined([half("a", "digits-00000"), half(""), half("", SHADOW)])
    assert not pairs
    assert alone(waiting) == {"stable": 0, "shadow": 0}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.permutations([(side, f"r{number}") for number in range(8) for side in (STABLE, SHADOW)]),
    st.lists(st.integers(0, 16), max_size=4),
)
def test_it_does_not_matter_how_the_halves_are_dealt_out_to_ticks(halves, cuts):
    exchanges = [half(name, side, at=float(name[1:])) for side, name in halves]
    edges = [0, *sorted(cuts), 16]
    waiting, pairs = Waiting(), []
    for start, end in pairwise(edges):
        waiting, more = join(stored_waiting(waiting_bytes(waiting)), exchanges[start:end], stable=STABLE, shadow=SHADOW)
        pairs += more
    assert sorted(pair.stable.request_id for pair in pairs) == [f"r{number}" for number in range(8)]
    assert all(pair.stable.request_id == pair.shadow.request_id for pair in pairs)


def test_nothing_stored_is_nothing_that_waits():
    assert stored_waiting(b"") == Waiting()
