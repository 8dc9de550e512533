"""Whose turn it is: several clusters, services that move and settled ones, and hints while a turn goes on."""

from collections import Counter

from deployments.turns.turn_queue import TurnQueue

ALL = {1, 2, 3}


def test_a_service_waits_once_and_has_one_turn_at_a_time() -> None:
    queue = TurnQueue(at_once=10)
    for _ in range(3):
        queue.offer(1, 10)
    assert queue.next(ALL) == (1, 10)
    queue.offer(1, 10)
    assert queue.next(ALL) is None
    queue.done(1, 10)
    assert queue.next(ALL) is None


def test_a_hint_during_a_turn_is_kept_for_another_one() -> None:
    queue = TurnQueue(at_once=10)
    queue.offer(1, 10)
    assert queue.next(ALL) == (1, 10)
    queue.offer(1, 10, is_hint=True)
    queue.offer(1, 10)
    assert queue.next(ALL) is None
    queue.done(1, 10)
    assert queue.next(ALL) == (1, 10)


def test_clusters_share_the_turns_whatever_each_has_waiting() -> None:
    queue = TurnQueue(at_once=20)
    for service in range(100):
        queue.offer(1, service)
    queue.offer(2, 1000)
    queue.offer(3, 2000)
    assert {queue.next(ALL) for _ in range(3)} == {(1, 0), (2, 1000), (3, 2000)}


def test_a_cluster_that_hangs_has_its_share_and_no_more() -> None:
    queue = TurnQueue(at_once=6)
    for service in range(10):
        queue.offer(1, service)
    assert [queue.next(ALL) for _ in range(4)] == [(1, 0), (1, 1), (1, 2), None]
    queue.offer(2, 1000)
    assert queue.next(ALL) == (2, 1000)
    assert queue.running(1) == 3


def test_several_clusters_that_hang_leave_a_turn_for_looks_and_one_cluster_has_one_in_any_case() -> None:
    queue, clusters = TurnQueue(at_once=8), set(range(9))
    for cluster in clusters:
        for service in range(8):
            queue.offer(cluster, service)
    while queue.next(clusters) is not None:
        pass
    assert sum(map(queue.running, clusters)) == 7
    lonely = TurnQueue(at_once=1)
    lonely.offer(1, 10)
    lonely.offer(1, 11)
    assert (lonely.next({1}), lonely.next({1})) == ((1, 10), None)


def test_services_that_move_come_first_and_settled_ones_are_not_forgotten() -> None:
    queue = TurnQueue(at_once=200)
    for service in range(20):
        queue.offer(1, service)
        queue.offer(1, 100 + service, is_settled=True)
    first = [queue.next(ALL) for _ in range(10)]
    kinds = Counter(found[1] >= 100 for found in first if found is not None)
    assert kinds == {False: 8, True: 2}
    assert len([1 for _ in range(30) if queue.next(ALL) is not None]) == 30
    assert queue.next(ALL) is None


def test_a_cluster_without_a_driver_waits_and_one_that_was_left_is_forgotten() -> None:
    queue = TurnQueue(at_once=10)
    queue.offer(1, 10)
    assert queue.next(set()) is None
    assert queue.next({1}) == (1, 10)
    queue.offer(1, 10, is_hint=True)
    queue.offer(1, 11)
    queue.leave(1)
    queue.done(1, 10)
    assert queue.next({1}) is None
