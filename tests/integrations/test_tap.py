"""Requests that are recorded at the replicas of a stable and a shadow: real runtimes, real Envoy, under load."""

from typing import Any

import pytest

from integrations.clusters.base import Exchange, Tap
from tests.integrations._support.runtimes import RUNTIME

ALL = Tap(share_percent=100)


class Taker:
    """Takes exchanges as the control plane does, and keeps them."""

    def __init__(self, cluster: Any) -> None:
        self.driver = cluster.driver
        self.cursor = ""
        self.found: list[Exchange] = []

    def take(self) -> None:
        found, self.cursor = self.driver.exchanges("default", "digits", self.cursor)
        self.found += found

    def of(self, revision: str) -> dict[str, Exchange]:
        self.take()
        return {each.request_id: each for each in self.found if each.revision == revision}


def test_a_tap_comes_and_goes_under_load_and_both_sides_of_a_mirror_record_the_same(
    cluster: Any, traffic: Any, eventually: Any
) -> None:
    """No request fails, no replica is restarted, and nothing is recorded before and after."""
    cluster.start(runtime=RUNTIME)
    cluster.apply(1, cluster.revision(1, 100), cluster.revision(2, 0, mirror_percent=100))
    cluster.until_ready(2)
    cluster.until_weights(r1=100, r2=0)
    eventually(lambda: [each.mirror_percent for each in cluster.observe().revisions] == [0, 100], "2 gets copies")
    started = [each.replicas[0].started_at for each in cluster.observe().revisions]
    taker = Taker(cluster)
    with traffic(cluster.url) as sent:
        sent.until_sent(100)
        taker.take()
        assert taker.found == []
        tapped = (cluster.revision(1, 100, tap=ALL), cluster.revision(2, 0, mirror_percent=100, tap=ALL))
        cluster.apply(2, *tapped)
        eventually(lambda: len(taker.of("digits-00001").keys() & taker.of("digits-00002").keys()) >= 100, "both sides")
        cluster.apply(3, cluster.revision(1, 100), cluster.revision(2, 0, mirror_percent=100))

        def quiet() -> bool:
            before = len(taker.found)
            sent.until_sent(300)
            taker.take()
            return len(taker.found) == before

        eventually(quiet, "nothing is recorded any more")
    stable, shadow = taker.of("digits-00001"), taker.of("digits-00002")
    for name in stable.keys() & shadow.keys():
        (x,) = stable[name].request["inputs"]
        assert stable[name].request["inputs"] == shadow[name].request["inputs"]
        assert stable[name].response["outputs"][0]["data"] == x["data"]
        assert shadow[name].response["outputs"][0]["data"] == pytest.approx([2 * each for each in x["data"]])
    assert (stable[name].model_version, shadow[name].model_version) == ("1", "2")
    assert sent.failures == []
    assert [each.replicas[0].started_at for each in cluster.observe().revisions] == started
