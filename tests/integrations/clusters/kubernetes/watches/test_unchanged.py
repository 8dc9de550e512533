"""What counts as a change of a service: of its own objects, and of the pool that answers for it."""

import time
from typing import Any

import pytest

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.access import Credentials
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.resource_types import Kind
from integrations.clusters.kubernetes.manifests.names import MANAGED, OWN, OWN_SINCE, SERVICE
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Stage
from integrations.clusters.kubernetes.options import GatewayReference, Options
from integrations.clusters.kubernetes.unchanged import Unchanged
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE, Cache, Known, key_of
from integrations.clusters.kubernetes.watches.cached_api import CachedApi
from integrations.clusters.kubernetes.watches.watcher import WATCHED


def item(name: str, service: str, version: int, at: str = "team", **data: str) -> dict[str, Any]:
    labels = {**MANAGED, SERVICE: service}
    metadata = {"name": name, "namespace": at, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata, "data": data}


def unchanged(there: dict[Kind, list[dict[str, Any]]]) -> tuple[Unchanged, Cache, CachedApi]:
    cache = Cache()
    cache.keep(["team", "other"])
    for kind in WATCHED:
        cache.list_begins(kind)
        cache.listed(kind, EVERYWHERE, {key_of(each): Known.of(kind, each) for each in there.get(kind, ())}, "5")
    api = CachedApi(Credentials("https://127.0.0.1:1", token="t"), cache)
    return Unchanged(api, Options(GatewayReference("gateway", "gateways"), "runtime:1")), cache, api


def test_a_change_of_the_pool_is_one_of_the_services_in_it() -> None:
    there = {
        resource_types.CONFIG_MAP: [
            item("fairlead-digits", "digits", 1, pool="warm"),
            item("fairlead-x", "x", 2),
            item("fairlead-far", "far", 2, at="other", pool="team/warm"),
        ],
        resource_types.POD: [item("warm-1", "warm", 3)],
    }
    seen, cache, api = unchanged(there)
    places = {"digits": "team", "x": "team", "warm": "team", "far": "other"}
    before = {name: seen.mark(at, name) for name, at in places.items()}
    assert None not in before.values()
    cache.written(resource_types.POD, {**item("warm-1", "warm", 7), "status": {"phase": "Running"}})
    changed = {name for name, mark in before.items() if seen.mark(places[name], name) != mark}
    assert changed == {"digits", "warm", "far"}, "also of one whose pool is in another namespace"
    api.close()


@pytest.mark.parametrize(("ago_s", "turns"), [(0.0, 2), (60.0, 1)], ids=["written just now", "long ago"])
def test_a_service_gets_turns_until_the_time_of_a_stage_has_passed(ago_s: float, turns: int) -> None:
    route = item("digits", "digits", 1)
    route["kind"] = "HTTPRoute"
    route["metadata"]["annotations"] = {OWN: Stage.KNOWN, OWN_SINCE: str(time.time() - ago_s)}
    seen, _, api = unchanged({resource_types.HTTP_ROUTE: [route]})
    revision = DesiredRevision("digits-00001", "digits", "1", "file:///a", "sha256:aa", 1, 100, pool="team/warm")
    desired, made = Desired("team", "digits", 1, (revision,)), []
    for _ in range(2):
        assert seen.applied(desired, lambda asked: made.append(asked) or []) == []
    assert made == [desired] * turns
    api.close()
