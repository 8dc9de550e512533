"""Own replicas of a service in a pool, as the cluster has them; `manifests.routes.own_replicas` decides about them."""

from collections.abc import Mapping, Sequence
from typing import Any

from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    NETWORK_POLICY,
    POD,
    ROUTES,
    Kind,
)
from integrations.clusters.kubernetes.manifests.names import OWN, SERVICE, deployment_of
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, Seen, Stage, decide, earned, spared
from integrations.clusters.kubernetes.observe.gateway import confirmation
from integrations.clusters.kubernetes.observe.observation import serving
from integrations.clusters.kubernetes.options import Options

Json = dict[str, Any]


def spare(desired: Desired, routes: Sequence[Json]) -> frozenset[str]:
    """Return the revisions that the pool need not have loaded, as the routes are now."""
    return spared(desired, _stage(desired.service, routes))


def _stage(service: str, routes: Sequence[Json]) -> Stage:
    """Return who answers, as the routes ask for it; the pool where that cannot be read."""
    for route in routes:
        if route["kind"] == "HTTPRoute" and route["metadata"]["name"] == service:
            said = route["metadata"].get("annotations", {}).get(OWN, "")
            return next((each for each in Stage if each.value == said), Stage.POOL)
    return Stage.POOL


def decided(
    api: Api,
    desired: Desired,
    entry: Entry,
    there: Mapping[Kind, Sequence[Json]],
    of_pool: list[Json],
    *,
    options: Options,
) -> tuple[Own, list[Json]]:
    """Return who is to answer, and the endpoints of that one.

    Args:
        entry: says what the pool has loaded.
        there: objects of the service by kind. Without any of own replicas these are not looked for.
        of_pool: endpoints of the pool.
    """
    if not (earned(desired) or there[DEPLOYMENT] or there[NETWORK_POLICY]):
        return Own(), of_pool
    routes = [route for kind in ROUTES for route in there[kind]]
    slices = api.list(ENDPOINT_SLICE, desired.namespace, {SERVICE: desired.service})
    pods = api.list(POD, desired.namespace, {SERVICE: desired.service})
    gateways = (options.gateway, *options.also)
    seen = Seen(
        stage=_stage(desired.service, routes),
        is_confirmed=not any(confirmation(desired.service, routes, each).problem for each in gateways),
        scales={each["metadata"]["name"]: int(each["spec"].get("replicas", 1)) for each in there[DEPLOYMENT]},
        ready={name: len(its) for name, its in serving(slices).items()},
        pods=frozenset(deployment_of(each["metadata"]["labels"]) for each in pods),
    )
    own = decide(desired, seen, entry.loaded)
    return own, slices if own.answers else of_pool
