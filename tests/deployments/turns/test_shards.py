"""Shards of clusters between controllers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from deployments.turns.shards import assigned, shard

CLUSTERS = st.sets(st.integers(1, 10_000), max_size=60)
CONTROLLERS = st.sets(st.text("abcdef0123456789.", min_size=1, max_size=12), max_size=8)


@given(clusters=CLUSTERS, controllers=CONTROLLERS)
def test_every_cluster_has_one_controller_and_none_has_more_than_its_share(
    clusters: set[int], controllers: set[str]
) -> None:
    found = assigned(controllers, clusters)
    assert set(found) == (clusters if controllers else set())
    counts = Counter(found.values())
    assert all(counts[each] * len(controllers) < len(clusters) + len(controllers) for each in controllers)
    parts = [shard(each, controllers=controllers, clusters=clusters) for each in controllers]
    assert sum(map(len, parts)) == len(found)


@given(clusters=CLUSTERS, controllers=CONTROLLERS)
def test_the_order_in_which_a_table_is_read_says_nothing(clusters: set[int], controllers: set[str]) -> None:
    assert assigned(sorted(controllers), sorted(clusters)) == assigned(
        sorted(controllers, reverse=True), sorted(clusters, reverse=True)
    )


def test_a_controller_that_comes_takes_its_share_and_few_clusters_move_between_the_others() -> None:
    clusters, before = range(1, 121), assigned(["a", "b", "c"], range(1, 121))
    after = assigned(["a", "b", "c", "d"], clusters)
    moved = [cluster for cluster in clusters if before[cluster] != after[cluster]]
    assert Counter(after.values()) == {"a": 30, "b": 30, "c": 30, "d": 30}
    assert len([cluster for cluster in moved if after[cluster] != "d"]) <= 12


def test_a_controller_that_is_not_in_the_table_has_nothing() -> None:
    assert shard("new", controllers=["old"], clusters=[1, 2]) == set()
