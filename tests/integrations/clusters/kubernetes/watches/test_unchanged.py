"""What counts as a change of a service: of its own objects, and of the pool that answers for it."""

from typing import Any

from integrations.clusters.kubernetes.access import Credentials
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.manifests.names import MANAGED, SERVICE
from integrations.clusters.kubernetes.options import GatewayReference, Options
from integrations.clusters.kubernetes.unchanged import Unchanged
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE, Cache, Known, key_of
from integrations.clusters.kubernetes.watches.cached_api import CachedApi
from integrations.clusters.kubernetes.watches.watcher import WATCHED


def item(name: str, service: str, version: int, at: str = "team", **data: str) -> dict[str, Any]:
    labels = {**MANAGED, SERVICE: service}
    metadata = {"name": name, "namespace": at, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata, "data": data}


def test_a_change_of_the_pool_is_one_of_the_services_in_it() -> None:
    cache = Cache()
    cache.keep(["team", "other"])
    there = {
        resource_types.CONFIG_MAP: [
            item("fairlead-digits", "digits", 1, pool="warm"),
            item("fairlead-x", "x", 2),
            item("fairlead-far", "far", 2, at="other", pool="team/warm"),
        ],
        resource_types.POD: [item("warm-1", "warm", 3)],
    }
    for kind in WATCHED:
        cache.list_begins(kind)
        cache.listed(kind, EVERYWHERE, {key_of(each): Known.of(kind, each) for each in there.get(kind, ())}, "5")
    api = CachedApi(Credentials("https://127.0.0.1:1", token="t"), cache)
    seen = Unchanged(api, Options(GatewayReference("gateway", "gateways"), "runtime:1"))
    places = {"digits": "team", "x": "team", "warm": "team", "far": "other"}
    before = {name: seen.mark(at, name) for name, at in places.items()}
    assert None not in before.values()
    cache.written(resource_types.POD, {**item("warm-1", "warm", 7), "status": {"phase": "Running"}})
    changed = {name for name, mark in before.items() if seen.mark(places[name], name) != mark}
    assert changed == {"digits", "warm", "far"}, "also of one whose pool is in another namespace"
    api.close()
