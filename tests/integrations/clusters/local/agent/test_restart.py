"""Replicas of a revision are started anew one after the other, with real Envoy and real runtimes."""

import pytest

from integrations.clusters.base import Observed, ReplicaPhase


def _new(seen: Observed, number: int) -> bool:
    return all(replica.restart_number == number for replica in seen.revisions[0].replicas)


@pytest.mark.parametrize("replicas", [1, 3])
def test_no_request_fails_while_replicas_are_restarted_and_none_is_ever_missing(
    cluster, traffic, runtime, eventually, replicas
):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100, replicas))
    before = {replica.started_at for replica in cluster.until_ready(replicas).revisions[0].replicas}
    ready, running = set(), set()

    def restarted() -> bool:
        seen = cluster.observe()
        phases = [replica.phase for replica in seen.revisions[0].replicas]
        ready.add(phases.count(ReplicaPhase.READY))
        running.add(len(phases))
        return _new(seen, 1)

    with traffic(cluster.url) as sent:
        sent.until_sent(50)
        cluster.apply(2, cluster.revision(1, 100, replicas, restart_number=1))
        eventually(restarted, "all replicas began anew", 60)
        after = {replica.started_at for replica in cluster.until_ready(replicas).revisions[0].replicas}
        sent.until_sent(50)
    assert sent.failures == []
    assert (min(ready), max(running)) == (replicas, replicas + 1)
    assert not before & after


def test_replicas_stay_while_the_one_that_shall_follow_does_not_become_ready(cluster, traffic, eventually):
    cluster.start()
    # What starts the replicas is changed on disk, which is no change of the revision.
    cluster.apply(1, cluster.revision(1, 100, 2))
    cluster.until_ready(2)
    model = cluster.layout.repositories / "default.digits-00001"
    model.rename(model.with_name("away"))
    with traffic(cluster.url) as sent:
        cluster.apply(2, cluster.revision(1, 100, 2, restart_number=1))

        def failing() -> Observed | None:
            seen = cluster.observe()
            return (
                seen
                if [replica.restarts > 0 for replica in seen.revisions[0].replicas] == [False, False, True]
                else None
            )

        seen = eventually(failing, "the new replica fails again and again")
        sent.until_sent(50)
        assert [replica.phase for replica in seen.revisions[0].replicas[:2]] == [ReplicaPhase.READY] * 2
        model.with_name("away").rename(model)
        eventually(lambda: _new(cluster.observe(), 1), "the restart goes on by itself")
        cluster.until_ready(2)
    assert sent.failures == []


def test_fewer_replicas_in_the_middle_of_a_restart_take_the_old_ones_first(cluster, eventually):
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100, 3))
    cluster.until_ready(3)
    cluster.apply(2, cluster.revision(1, 100, 3, restart_number=1))
    eventually(lambda: any(each.restart_number for each in cluster.observe().revisions[0].replicas), "it begins")
    cluster.apply(3, cluster.revision(1, 100, 1, restart_number=1))
    eventually(lambda: _new(cluster.observe(), 1), "only new ones are left")
    cluster.until_ready(1)
