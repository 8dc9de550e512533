import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.analysis.evidence.totals import (
    Counts,
    Histogram,
    Totals,
    add,
    begin,
    lifetime_latency,
    stored_totals,
    totals_json,
)
from integrations.clusters.base import BatchTime, ModelTime, Sample

EDGES = (100.0, 200.0, 500.0)
START = 1000.0


def _gateway(requests: int, *, server_errors: int = 0, client_errors: int = 0, started_at: float = 0.0) -> Sample:
    return Sample("gateway", "digits-00002", started_at, requests, client_errors, server_errors)


def _replica(*counts: int, name: str = "digits-00002-0", started_at: float = 0.0) -> Sample:
    return Sample(name, "digits-00002", started_at, sum(counts), 0, 0, EDGES, counts)


def _ran(*batches: BatchTime) -> Sample:
    return Sample("digits-00002-0", "digits-00002", 0.0, 0, 0, 0, batches=batches)


def _pod(
    *counts: int, name: str = "pod-a", started_at: float = 0.0, failed: int = 0, in_flight: int = 0, restarts: int = 0
) -> Sample:
    """Return what a replica says that stands for the gateway; its requests without error are in the buckets."""
    return replace(
        _replica(*counts, name=name, started_at=started_at),
        requests=sum(counts) + failed,
        server_errors=failed,
        in_flight=in_flight,
        restarts=restarts,
        replaces_gateway=True,
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([_gateway(90)], [_gateway(100)], Counts(10), id="what the gateway counted before is left out"),
        pytest.param(
            [_gateway(90, server_errors=5, client_errors=7)],
            [_gateway(100, server_errors=6, client_errors=9)],
            Counts(10, client_errors=2, server_errors=1),
            id="errors are counted apart",
        ),
        pytest.param(
            [_gateway(90)],
            [_gateway(7, started_at=1005.0)],
            Counts(7),
            id="a gateway that started again counts from 0",
        ),
        pytest.param(
            [_gateway(90)],
            [_gateway(120, started_at=1005.0)],
            Counts(120),
            id="a gateway that started again and counted further than before is not taken for the old one",
        ),
        pytest.param([_gateway(90)], [_gateway(7)], Counts(7), id="a counter that fell began again"),
        pytest.param([], [_gateway(50, started_at=990.0)], Counts(), id="one first seen now that ran before: from now"),
        pytest.param([], [_gateway(50, started_at=1001.0)], Counts(50), id="one that started in the window: in full"),
        pytest.param(
            [_replica(5, 0, 0, 0)],
            [_replica(7, 1, 0, 2)],
            Counts(latency=Histogram(EDGES, (2, 1, 0, 2))),
            id="latency is counted by bucket",
        ),
        pytest.param(
            [_replica(5, 0, 0, 0)],
            [_replica(1, 1, 0, 0, started_at=1004.0)],
            Counts(latency=Histogram(EDGES, (1, 1, 0, 0))),
            id="a replica that was restarted counts from 0",
        ),
        pytest.param(
            [_replica(5, 0, 0, 0)],
            [_replica(6, 0, 0, 0), _replica(0, 3, 0, 0, name="digits-00002-1", started_at=1002.0)],
            Counts(latency=Histogram(EDGES, (1, 3, 0, 0))),
            id="replicas of a revision are added up",
        ),
        pytest.param(
            [replace(_replica(), latency_edges_us=(), latency_counts=())],
            [_replica(4, 0, 0, 1)],
            Counts(latency=Histogram(EDGES, (4, 0, 0, 1))),
            id="a replica whose histogram appears with its first request",
        ),
        pytest.param(
            [_ran(BatchTime(1, 5, 500))],
            [_ran(BatchTime(1, 7, 720), BatchTime(8, 16, 900))],
            Counts(batches=(BatchTime(1, 2, 220), BatchTime(8, 16, 900))),
            id="executions are counted by size",
        ),
        pytest.param(
            [_ran(BatchTime(1, 5, 500))],
            [_ran(BatchTime(1, 6, 400))],
            Counts(batches=(BatchTime(1, 6, 400),)),
            id="a replica whose time of executions fell began again",
        ),
        pytest.param(
            [_pod(5, 0, 0, 0)],
            [_pod(7, 1, 0, 2, failed=3)],
            Counts(8, server_errors=3, latency=Histogram(EDGES, (2, 1, 0, 2))),
            id="a replica that stands for the gateway counts requests and errors too",
        ),
        pytest.param(
            [replace(_pod(failed=4), latency_edges_us=(), latency_counts=())],
            [_pod(1, 0, 0, 0, failed=4)],
            Counts(1, latency=Histogram(EDGES, (1, 0, 0, 0))),
            id="errors before the first answer count once",
        ),
        pytest.param(
            [_pod(50, 0, 0, 0, in_flight=3)],
            [_pod(4, 0, 0, 0, started_at=1004.0, restarts=1)],
            Counts(7, server_errors=3, latency=Histogram(EDGES, (4, 0, 0, 0))),
            id="what a process had in hand when it ended are errors",
        ),
        pytest.param(
            [_pod(50, 0, 0, 0)],
            [_pod(4, 0, 0, 0, started_at=1004.0)],
            Counts(5, server_errors=1, latency=Histogram(EDGES, (4, 0, 0, 0))),
            id="a restart is one error at least, whether the cluster tells of it yet or not",
        ),
        pytest.param(
            [_pod(50, 0, 0, 0, in_flight=1)],
            [_pod(4, 0, 0, 0, started_at=1004.0, restarts=3)],
            Counts(7, server_errors=3, latency=Histogram(EDGES, (4, 0, 0, 0))),
            id="restarts between two looks count each",
        ),
        pytest.param(
            [],
            [_pod(4, 0, 0, 0, started_at=1004.0, restarts=2)],
            Counts(5, server_errors=1, latency=Histogram(EDGES, (4, 0, 0, 0))),
            id="a replica that is new and restarted counts one, the others may have been before",
        ),
        pytest.param(
            [_replica(5, 0, 0, 0)],
            [replace(_replica(1, 0, 0, 0, started_at=1004.0), restarts=1)],
            Counts(latency=Histogram(EDGES, (1, 0, 0, 0))),
            id="where the gateway counts, a restart is what it saw of it",
        ),
        pytest.param(
            [_gateway(90)], [], Counts(), id="a source that is silent for a tick has counted nothing as far as we know"
        ),
    ],
)
def test_what_one_look_adds(before: list[Sample], after: list[Sample], expected: Counts) -> None:
    assert add(begin(before, START), after).of("digits-00002") == expected


def test_a_source_that_was_silent_for_a_tick_is_made_up_for_by_the_next() -> None:
    totals = add(add(begin([_gateway(90)], START), []), [_gateway(130)])
    assert totals.of("digits-00002").requests == 40


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=12))
def test_restarts_lose_nothing_that_a_look_could_see(looks: list[tuple[int, bool]]) -> None:
    """Whatever was counted in all looks together is what is summed up, however often the process began again."""
    totals, counter, started_at, expected = begin([_gateway(17)], START), 17, 0.0, 0
    for index, (new, restarted) in enumerate(looks, start=1):
        if restarted:
            counter, started_at = 0, START + index
        counter += new
        expected += new
        totals = add(totals, [_gateway(counter, started_at=started_at)])
    assert totals.of("digits-00002").requests == expected


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 20), st.booleans())), max_size=12),
)
def test_pods_that_come_and_go_take_nothing_away(looks: list[dict[str, tuple[int, bool]]]) -> None:
    """Each look sees some pods, some of them anew: sums only rise, and have all that a look could see."""
    totals, counters, expected = begin([], START), {}, 0
    for index, pods in enumerate(looks, start=1):
        seen = []
        for name, (new, replaced) in pods.items():
            generation, counter = counters.get(name, (0, 0))
            generation, counter = (index, new) if replaced else (generation, counter + new)
            counters[name] = (generation, counter)
            expected += new
            seen.append(_pod(counter, 0, 0, 0, name=f"{name}-{generation}", started_at=START + generation))
        before = totals.of("digits-00002").requests
        totals = add(totals, seen)
        assert totals.of("digits-00002").requests >= before
    assert totals.of("digits-00002").requests == totals.of("digits-00002").latency.total == expected


def test_totals_survive_being_stored() -> None:
    ran = replace(_replica(5, 0, 0, 0), batches=(BatchTime(1, 5, 100),))
    more = replace(_replica(5, 0, 0, 9), batches=(BatchTime(1, 5, 100), BatchTime(4, 9, 300)))
    pod = _pod(1, 0, 0, 0, in_flight=2, restarts=1)
    totals = add(begin([_gateway(90), ran], START), [_gateway(95), more, pod])
    assert stored_totals(json.loads(json.dumps(totals_json(totals)))) == totals


def test_the_models_of_a_pools_replica_are_not_stored() -> None:
    pool = replace(_replica(5, 0, 0, 0), models=(ModelTime("default.digits", 5, 1 << 20),))
    [stored] = stored_totals(json.loads(json.dumps(totals_json(begin([pool], START))))).last.values()
    assert stored == replace(pool, models=())


def test_an_unknown_revision_has_no_counts() -> None:
    assert Totals(START).of("digits-00009") == Counts()


@pytest.mark.parametrize(
    ("counts", "quantile", "edge"),
    [
        pytest.param((95, 4, 1, 0), 0.95, 100.0, id="exactly the quantile lies below the first edge"),
        pytest.param((94, 5, 1, 0), 0.95, 200.0, id="one less needs the next edge"),
        pytest.param((0, 0, 0, 10), 0.5, 500.0, id="all beyond the last edge: the last edge"),
        pytest.param((0, 0, 0, 0), 0.95, None, id="no requests: no edge"),
    ],
)
def test_the_edge_that_a_quantile_does_not_pass(counts: tuple[int, ...], quantile: float, edge: float | None) -> None:
    assert Histogram(EDGES, counts).edge_of(quantile) == edge


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4), st.floats(0.5, 0.9999))
def test_at_most_the_rest_of_the_quantile_is_slower_than_its_edge(counts: list[int], quantile: float) -> None:
    histogram = Histogram(EDGES, tuple(counts))
    edge = histogram.edge_of(quantile)
    if edge is not None and edge < EDGES[-1]:
        assert histogram.slower_than(edge) <= (1 - quantile) * histogram.total + 1e-6


@pytest.mark.parametrize(
    ("edge", "slower"),
    [
        (100.0, 6),
        (200.0, 5),
        (500.0, 3),
        pytest.param(150.0, 5, id="no edge here: rounded up, in favour of the canary"),
    ],
)
def test_how_many_were_slower(edge: float, slower: int) -> None:
    assert Histogram(EDGES, (4, 1, 2, 3)).slower_than(edge) == slower


def test_buckets_of_another_runtime_go_into_the_next_higher_bucket() -> None:
    both = Histogram(EDGES, (1, 1, 1, 1)).plus(Histogram((150.0, 600.0), (10, 20, 30)))
    assert both == Histogram(EDGES, (1, 11, 1, 51))


def test_the_lifetime_latency_is_that_of_the_replicas_of_one_revision() -> None:
    other = replace(_replica(9, 9, 9, 9), revision="digits-00001")
    samples = [_gateway(50), _replica(1, 0, 0, 2), _replica(0, 4, 0, 0, name="digits-00002-1"), other]
    assert lifetime_latency(samples, "digits-00002") == Histogram(EDGES, (1, 4, 0, 2))
