"""Own replicas of a service in a pool, as the cluster has them; `manifests.routes.own_replicas` decides about them."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from integrations.clusters.kubernetes.manifests.names import OWN, OWN_SINCE, SERVICE, deployment_of, pool_of
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import (
    SETTLES_S,
    Own,
    Seen,
    Stage,
    decide,
    earned,
    spared,
)
from integrations.clusters.kubernetes.observe.gateway import confirmation, leads_to_pool
from integrations.clusters.kubernetes.observe.observation import serving
from integrations.clusters.kubernetes.options import Options

Json = dict[str, Any]


def spare(desired: Desired, routes: Sequence[Json]) -> frozenset[str]:
    """Return the revisions that the pool need not have loaded, as the routes are now."""
    return spared(desired, stage_of(desired, routes))


def stage_of(desired: Desired, routes: Sequence[Json]) -> Stage:
    """Return who answers, as the routes ask for it.

    Those that do not say it are of a service in a pool, or of one that comes into it: they lead there, or do not.
    """
    main = _main(desired.service, routes)
    if (found := Stage.of(_annotated(main, OWN))) is not Stage.POOL:
        return found
    pools = {pool_of(each) for each in desired.revisions if each.pool}
    is_outside = any(not each.pool for each in desired.revisions)
    return Stage.PLAIN if is_outside and not any(leads_to_pool(each, main) for each in pools) else Stage.POOL


def written_at(service: str, routes: Sequence[Json]) -> float:
    """Return since when the routes ask for their stage, in Unix seconds; 0 where they do not say it."""
    with suppress(ValueError):
        return float(_annotated(_main(service, routes), OWN_SINCE) or 0)
    return 0.0


def _main(service: str, routes: Sequence[Json]) -> list[Json]:
    return [each for each in routes if each["kind"] == "HTTPRoute" and each["metadata"]["name"] == service]


def _annotated(routes: Sequence[Json], name: str) -> str:
    return next((str(each["metadata"].get("annotations", {}).get(name, "")) for each in routes), "")


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
        entry: says what the pool has loaded; it names a pool that the service has left, too, until no rule is left.
        there: objects of the service by kind. Without any of own replicas these are not looked for.
        of_pool: endpoints of the pool.
    """
    if not (earned(desired) or there[DEPLOYMENT] or there[NETWORK_POLICY]):
        return Own(), of_pool
    routes = [route for kind in ROUTES for route in there[kind]]
    slices = api.list(ENDPOINT_SLICE, desired.namespace, {SERVICE: desired.service})
    pods = api.list(POD, desired.namespace, {SERVICE: desired.service})
    gateways = (options.gateway, *options.also)
    since, now = written_at(desired.service, routes), time.time()
    is_taken_up = not any(confirmation(desired.service, routes, each).problem for each in gateways)
    seen = Seen(
        stage=stage_of(desired, routes),
        is_confirmed=is_taken_up and not 0 <= now - since < SETTLES_S,
        scales={each["metadata"]["name"]: int(each["spec"].get("replicas", 1)) for each in there[DEPLOYMENT]},
        ready={name: len(its) for name, its in serving(slices).items()},
        pods=frozenset(deployment_of(each["metadata"]["labels"]) for each in pods),
    )
    own = decide(desired, seen, entry.loaded)
    own = replace(own, since=since if since and own.stage is seen.stage else now)
    return own, of_pool if own.stage.is_pools else slices
