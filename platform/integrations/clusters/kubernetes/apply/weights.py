"""Weights that can be given now: over the revisions whose replicas take requests. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.manifests.names import backend, pool_of, replicas_name
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, moves
from integrations.clusters.kubernetes.observe.observation import serving
from integrations.clusters.weight_distribution import Claim, shares

Json = dict[str, Any]


def loaded_revisions(desired: Desired, entry: Entry, own: Own) -> Collection[str]:
    """Return the revisions in a pool that may get requests: in a move the pool, too, has to have loaded them once."""
    if own.stage.is_pools:
        return entry.loaded
    return own.present & entry.loaded if moves(desired) else own.present


def given_weights(
    desired: Desired, slices: Sequence[Json], loaded: Collection[str], own: Own
) -> tuple[Desired, dict[str, int]]:
    """Return the desired state with copies and groups only for able revisions, and the weights over ready ones.

    Explain requests follow the weights: a revision whose explainer is not ready answers all others.
    Where nothing is ready the weights stay as desired: the gateway then answers 503 by itself. Of a service
    in a pool the slices are the pool's, and `loaded` the revisions that it has loaded; where own replicas answer both
    are of these.
    """
    able, in_pool = serving(slices), own.stage.is_pools
    names = {
        each.name: {replicas_name(pool_of(each))} if each.pool and in_pool else {each.name, backend(each)}
        for each in desired.revisions
    }
    ready = {revision: min(len(able[name]) for name in its) for revision, its in names.items()}
    ready |= {each.name: 0 for each in desired.revisions if each.pool and each.name not in loaded}
    claims = [Claim(each.name, each.weight_percent, ready.get(each.name, 0)) for each in desired.revisions]
    given = shares(claims)
    if moves(desired) and in_pool and not any(given.values()):  # those outside it get none yet
        given = shares([replace(each, weight_percent=1) for each in claims])
    if not any(given.values()):
        given = {claim.revision: claim.weight_percent for claim in claims}
    revisions = tuple(
        each if ready.get(each.name) else replace(each, mirror_percent=0, match=()) for each in desired.revisions
    )
    return replace(desired, revisions=revisions), given


def is_able(desired: Desired, slices: Sequence[Json]) -> bool:
    """Return whether some replica that stays takes requests; one of a revision that goes to sleep ends."""
    able = serving(slices)
    return any(each.replicas and able.get(backend(each)) for each in desired.revisions)
