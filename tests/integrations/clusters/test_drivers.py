"""Drivers are made for what a cluster is, and kept until that changes."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import InvalidInput
from integrations.clusters.drivers import KubernetesCluster, LocalCluster, driver_for, use_cache
from integrations.clusters.kubernetes.access import AsPod, Credentials
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import GatewayReference, Options
from integrations.clusters.kubernetes.watches import Cache
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE
from integrations.clusters.kubernetes.watches.watcher import WATCHED
from integrations.clusters.local.driver import LocalDriver

PLACE = KubernetesCluster(
    Credentials("https://127.0.0.1:6443", token="first"), Options(GatewayReference("models", "gateways"), "i", "c", "/")
)
_names = (f"cluster-{number}" for number in itertools.count())


def test_a_cluster_has_the_driver_of_its_kind(tmp_path: Path) -> None:
    assert isinstance(driver_for(next(_names), LocalCluster(tmp_path)), LocalDriver)
    assert isinstance(driver_for(next(_names), PLACE), KubernetesDriver)


def test_a_driver_is_kept_until_its_cluster_changes() -> None:
    name = next(_names)
    first = driver_for(name, PLACE)
    assert driver_for(name, replace(PLACE)) is first
    changed = replace(PLACE, access=Credentials("https://127.0.0.1:6443", token="second"))
    second = driver_for(name, changed)
    assert second is not first
    assert driver_for(name, changed) is second


def test_clusters_that_are_reached_alike_have_drivers_of_their_own() -> None:
    assert driver_for(next(_names), PLACE) is not driver_for(next(_names), PLACE)


def test_a_place_that_cannot_be_reached_is_refused_each_time() -> None:
    name = next(_names)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="the pod's service account does not say how to reach"):
            driver_for(name, replace(PLACE, access=AsPod()))


def test_a_driver_reads_from_the_cache_of_the_cluster_that_it_reaches_and_from_no_other() -> None:
    name, cache = next(_names), Cache()
    cache.keep(["team"])
    for kind in WATCHED:
        cache.listed(kind, EVERYWHERE, {}, "1")
    before = driver_for(name, PLACE)
    use_cache(name, PLACE.access, cache)
    cached = driver_for(name, PLACE)
    assert (before.mark("team", "digits"), cached is before) == (None, False)
    assert cached.mark("team", "digits") is not None
    elsewhere = replace(PLACE, access=Credentials("https://127.0.0.1:6443", token="of another cluster"))
    assert driver_for(name, elsewhere).mark("team", "digits") is None
    use_cache(name, PLACE.access, None)
    assert driver_for(name, PLACE).mark("team", "digits") is None
