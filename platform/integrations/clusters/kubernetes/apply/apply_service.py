"""Server-side apply of a service's desired state. Called by the driver, with the generation taken.

catalog of its pool -> weights over what is ready -> prune autoscalers -> apply objects, policies and then routes last
-> prune -> replicas
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from common.errors import Conflict, Unavailable
from integrations.clusters.base import CallerKeys, Desired, Drift, DriftPolicy
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.errors import ManagedElsewhere
from integrations.clusters.kubernetes.apply import (
    caller_keys,
    own_replicas,
    ownership_configmap,
    pool_catalog,
    pool_loads,
)
from integrations.clusters.kubernetes.apply.weights import given_weights, is_able, loaded_revisions
from integrations.clusters.kubernetes.manifests import Manifest, policies, render
from integrations.clusters.kubernetes.manifests.images import refuse_images
from integrations.clusters.kubernetes.manifests.names import (
    CONFIRMED,
    GENERATION,
    SERVICE,
    SLEPT,
    companion_name,
    endpoints_of,
    pool_at,
    replicas_name,
    tap_name,
)
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.pools import pool_of_service
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, own_revisions
from integrations.clusters.kubernetes.manifests.scaling.autoscaler import is_autoscaled
from integrations.clusters.kubernetes.manifests.workloads import claims, queues
from integrations.clusters.kubernetes.manifests.workloads.companion import is_companion_autoscaled
from integrations.clusters.kubernetes.observe import drift
from integrations.clusters.kubernetes.observe.gateway import Routed, confirmed_before, must_hold
from integrations.clusters.kubernetes.observe.gateway_features import POLICIES, GatewayClass
from integrations.clusters.kubernetes.observe.pod_templates import keep_templates
from integrations.clusters.kubernetes.options import Options

Json = dict[str, Any]
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies the desired state to the API server of one cluster."""

    api: Api
    options: Options

    def apply(self, desired: Desired, entry: Entry) -> list[Drift]:
        """Apply everything; returns what others changed, put back or left as `drift` says.

        Raises:
            Conflict: an object of that name exists that is not ours; all else was applied.
            Unavailable: the routes keep changing.
        """
        for _ in range(_TRIES):
            try:
                return self._apply(desired, entry)
            except _ChangedError:
                continue
        raise Unavailable(f"the routes of {desired.namespace}/{desired.service} keep changing; they are tried again")

    def _apply(self, desired: Desired, entry: Entry) -> list[Drift]:
        options = self.options.of_namespace(desired.namespace, desired.shared_with)
        at, pool = pool_of_service(desired)
        if entry.pool and not pool:  # it has left that pool, and routes may still lead there
            at, pool = pool_at(entry.pool, desired.namespace)
        hashes = bool(pool) and self._hashes(options)
        kinds = self._pruned(desired, entry, hashes=hashes)
        there = {kind: self._list(kind, desired.namespace, desired.service) for kind in kinds}
        tap = self.api.get(resource_types.CONFIG_MAP, desired.namespace, tap_name(desired.service))
        there[resource_types.CONFIG_MAP] = [] if tap is None else [tap]  # it goes with the service, not before
        routes = [route for kind in resource_types.ROUTES for route in there[kind]]
        if _generation(desired.service, there[resource_types.HTTP_ROUTE]) > desired.generation:
            return []
        own, slices = Own(), self._list(resource_types.ENDPOINT_SLICE, at or desired.namespace, pool or desired.service)
        if pool:
            entry = self._in_pool(desired, entry, (at, pool), slices, own_replicas.spare(desired, routes))
            own, slices = own_replicas.decided(self.api, desired, entry, there, slices, options=options)
        if own.has_left:
            entry = ownership_configmap.forget_pool(self.api, desired.namespace, entry)
        desired, given = given_weights(desired, slices, loaded_revisions(desired, entry, own), own)
        hashes = hashes and not own.stage.is_plain
        before = confirmed_before(desired.service, routes, options)
        keys = CallerKeys() if desired.access is None else caller_keys.read(self.api, desired.namespace)
        wanted = {each["kind"] for each in policies(desired)}
        live = [policy for kind in resource_types.POLICIES for policy in there.get(kind, ())]
        is_held = must_hold(desired.service, routes, wanted, live, options.gateway)
        waits = any(each.may_sleep for each in desired.revisions) and not is_able(desired, slices)
        manifests = render(
            desired, given, options, keys=keys, is_held=is_held, hashes=hashes, waits=waits, beside_pool=own
        )
        manifests = self._finished(desired, manifests, there, options)
        # Before another kind of autoscaler comes: KEDA refuses a Deployment that has one. Who may no longer reach a
        # pool is kept from it before its entry forgets that they could. A hash ends before weights change for it.
        early = (*resource_types.AUTOSCALERS, resource_types.REFERENCE_GRANT, resource_types.TRAFFIC_POLICY)
        self._prune({kind: there[kind] for kind in early if kind in there}, manifests)
        found: list[Drift] = []
        conflicts = []
        for manifest in manifests:
            known = next((each for each in there[resource_types.kind_of(manifest)] if _is_same(each, manifest)), None)
            try:
                if known is not None:
                    found += self._keep_up(manifest, known, desired.drift, before)
                elif drift.name_of(manifest) in entry.objects:
                    found += self._bring_back(manifest, desired.drift, before)
                else:
                    self._bring(drift.sealed(manifest), before)
            except ManagedElsewhere as error:
                conflicts.append(error.message)
            except Conflict as error:
                raise _ChangedError from error
        ownership_configmap.note(self.api, desired.namespace, entry, map(drift.name_of, manifests))
        self._prune(there, manifests)
        found += self._scale(desired, own)
        if conflicts:
            raise Conflict("; ".join(conflicts))
        return found

    def _finished(
        self,
        desired: Desired,
        manifests: Sequence[Manifest],
        there: dict[resource_types.Kind, list[Json]],
        options: Options,
    ) -> list[Manifest]:
        """Return the manifests with what the live objects keep, and with claims; raises InvalidInput for images."""
        deployments = there[resource_types.DEPLOYMENT]
        keep_templates(desired, manifests, deployments)
        found = claims.with_templates(desired, queues.follow_templates(manifests))
        if any(each["kind"] == claims.KIND for each in found) and resource_types.CLAIM_TEMPLATE not in there:
            kind = resource_types.CLAIM_TEMPLATE
            there[kind] = self._list(kind, desired.namespace, desired.service)
        pinned = {name for revision in desired.revisions for name in revision.pod_templates}
        refuse_images(found, options, deployments, pinned)
        return found

    def _hashes(self, options: Options) -> bool:
        """Return whether the gateway sends requests by a hash where a policy says so."""
        reference = options.gateway
        gateway = self.api.get(resource_types.GATEWAY, reference.namespace, reference.name)
        name = "" if gateway is None else gateway["spec"]["gatewayClassName"]
        found = self.api.get(resource_types.GATEWAY_CLASS, "", name) if name else None
        return POLICIES in GatewayClass.read(gateway, found).features

    def _in_pool(
        self, desired: Desired, entry: Entry, at: tuple[str, str], slices: Sequence[Json], spare: Collection[str]
    ) -> Entry:
        """Return the service's entry, with what its pool has loaded, once the pool's catalog has the service.

        The entry names the pool before the catalog names the service. The pool loads all revisions but the spare ones.
        """
        namespace = desired.namespace
        pooled = {each.name: each.model_version for each in desired.revisions if each.pool}
        there, name = at
        pool = name if there == namespace else f"{there}/{name}"
        try:
            known = ownership_configmap.write_pool(
                self.api,
                namespace,
                entry,
                replace(entry, pool=pool, pooled=pooled, loaded=entry.loaded & pooled.keys()),
            )
            if ownership_configmap.read(self.api, there, name) is None:
                return known
            pool_catalog.put(self.api, desired, at, self.options)
            every = [each for each in slices if endpoints_of(each["metadata"]["labels"]) == replicas_name(name)]
            names = pooled.keys() - spare
            awaited = replace(desired, revisions=tuple(each for each in desired.revisions if each.name in names))
            asked = pool_loads.loaded(awaited, known, every, self.options, time.time())
            return ownership_configmap.write_pool(self.api, namespace, known, asked)
        except Conflict as error:
            raise Unavailable(f"{namespace}/{desired.service}: {error.message}; it is tried again") from error

    def _keep_up(self, manifest: Manifest, known: Json, policy: DriftPolicy, before: Routed) -> list[Drift]:
        """Apply one manifest where the object differs (`drift` says how others' changes are resolved).

        Who may call a service is put back in any case. A ResourceClaimTemplate stays, since its spec is immutable.
        """
        if resource_types.kind_of(manifest) == resource_types.CLAIM_TEMPLATE:
            return []
        wanted = drift.sealed(manifest)
        is_applied = drift.has_seal(wanted, known)
        wanted = drift.ceded(wanted, known, self.options.allowed_managers)
        differences = drift.differences(wanted, known)
        heals = _heals(manifest, policy)
        if not heals:
            wanted = drift.without(wanted, [each.path for each in differences])
        if not is_applied or (heals and differences):
            self._bring(wanted, before, known, force=bool(heals and differences))
        return [each.of(manifest, healed=heals) for each in differences]

    def _bring_back(self, manifest: Manifest, policy: DriftPolicy, before: Routed) -> list[Drift]:
        """Create an object again that is gone, or no longer known as ours."""
        heals = _heals(manifest, policy)
        if heals:
            self._bring(drift.sealed(manifest), before)
        return [Drift(drift.name_of(manifest), "", "the object", "", healed=heals)]

    def _bring(self, wanted: Manifest, before: Routed, known: Json | None = None, *, force: bool = False) -> None:
        """Apply a sealed manifest; a route, or a policy, only if it is unchanged since it was read."""
        kind = resource_types.kind_of(wanted)
        if kind in resource_types.ROUTES:
            wanted["metadata"]["annotations"][CONFIRMED] = before.to_json()
        if known is not None and kind in (*resource_types.ROUTES, *resource_types.POLICIES):
            wanted["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"]
        self.api.apply(wanted, force=force)

    def _scale(self, desired: Desired, own: Own) -> list[Drift]:
        """Set the number of replicas where it differs; an autoscaler may have more of them.

        Only if unchanged since it was read: where an autoscaler was faster, its number is read again.
        """
        found: dict[str, Drift] = {}
        for _ in range(_TRIES):
            with suppress(Conflict):
                self._scale_as_read(desired, own, found)
                break
        return list(found.values())

    def _scale_as_read(self, desired: Desired, own: Own, found: dict[str, Drift]) -> None:
        """Set numbers of replicas, and record those set by hand; raises Conflict where one was changed."""
        wanted = {each.deployment: each for each in _counts(desired, own, self.options)}
        for deployment in self._list(resource_types.DEPLOYMENT, desired.namespace, desired.service):
            metadata, there = deployment["metadata"], deployment["spec"]["replicas"]
            count, owners = wanted.get(metadata["name"]), drift.replicas_owners(deployment)
            if count is None or "deletionTimestamp" in metadata:
                continue
            is_woken = drift.is_woken(deployment)
            its_sleep = metadata.get("annotations", {}).get(SLEPT)
            if is_woken and not count.replicas and count.slept is not None and count.slept == its_sleep:
                continue  # the reconciler learns of it by the next observation
            if there == count.replicas and owners and not is_woken:
                continue
            if there > count.replicas and count.is_least:
                continue
            if any(owner.manager in self.options.allowed_managers for owner in owners):
                continue
            by_hand = drift.scaled_by_hand(deployment, count.replicas)
            is_left = by_hand is not None and desired.drift is DriftPolicy.KEEP
            if by_hand is not None:
                found[count.deployment] = by_hand.of(deployment, healed=not is_left)
            if not is_left:
                self.api.scale(resource_types.DEPLOYMENT, metadata, count.replicas)

    def _prune(self, there: Mapping[resource_types.Kind, Sequence[Json]], manifests: Iterable[Manifest]) -> None:
        """Remove what is no longer desired."""
        kept = {(resource_types.kind_of(each), each["metadata"]["name"]) for each in manifests}
        for kind, objects in there.items():
            for each in objects:
                metadata = each["metadata"]
                is_leaving = "deletionTimestamp" in metadata
                if (kind, metadata["name"]) not in kept and not is_leaving and not _is_controlled(each):
                    self.api.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def _pruned(self, desired: Desired, entry: Entry, *, hashes: bool) -> Iterator[resource_types.Kind]:
        """Yield the kinds that are pruned once no longer desired, in this order.

        KEDA's is one of them where the operator chose KEDA, now or before, Envoy Gateway's where the service has, or
        had, policies, and claims' where its replicas claim GPUs, or did.
        """
        if policies(desired, hashes=hashes) or policy_kinds(entry):
            yield from resource_types.POLICIES
        if self._has_scaled(entry):
            yield resource_types.SCALED_OBJECT
        yield from resource_types.PRUNED
        if entry.is_pool or any(each.is_pool for each in desired.revisions):
            yield from resource_types.OF_POOLS
        if entry.is_shared or desired.shared_with:
            yield resource_types.REFERENCE_GRANT
        if claims.are_used(desired, self.options) or _has_claims(entry):
            yield resource_types.CLAIM_TEMPLATE

    def in_order_of_removal(self, entry: Entry) -> Iterator[Sequence[resource_types.Kind]]:
        """Yield the kinds of a service's objects, each group to be gone before the next is removed."""
        yield resource_types.ROUTES
        yield policy_kinds(entry)
        scaled = [resource_types.SCALED_OBJECT] if self._has_scaled(entry) else []
        last = (resource_types.NETWORK_POLICY, resource_types.SERVICE_ACCOUNT)
        claimed = [resource_types.CLAIM_TEMPLATE] if _has_claims(entry) else []
        rest = (kind for kind in resource_types.PRUNED if kind not in (*resource_types.ROUTES, *last))
        shared = [resource_types.REFERENCE_GRANT] if entry.is_shared else []
        yield [*shared, *scaled, *rest, *claimed, *(resource_types.OF_POOLS if entry.is_pool else ())]
        yield last

    def _has_scaled(self, entry: Entry) -> bool:
        kind = resource_types.SCALED_OBJECT.kind
        return self.options.keda is not None or any(each.startswith(f"{kind}/") for each in entry.objects)

    def _list(self, kind: resource_types.Kind, namespace: str, service: str) -> list[Json]:
        return self.api.list(kind, namespace, {SERVICE: service})


def policy_kinds(entry: Entry) -> list[resource_types.Kind]:
    """Return the kinds of Envoy Gateway's policies that the service has, or had."""
    return [kind for kind in resource_types.POLICIES if any(each.startswith(f"{kind.kind}/") for each in entry.objects)]


def _has_claims(entry: Entry) -> bool:
    return any(each.startswith(f"{resource_types.CLAIM_TEMPLATE.kind}/") for each in entry.objects)


def _heals(manifest: Manifest, policy: DriftPolicy) -> bool:
    closed = (*resource_types.POLICIES, resource_types.REFERENCE_GRANT)
    return policy is DriftPolicy.HEAL or resource_types.kind_of(manifest) in closed


class _Count(NamedTuple):
    """Number of replicas that a Deployment should have, or at least have where its autoscaler may set more.

    Attributes:
        slept: when it went to sleep last, as its annotation has it; None where it never did.
    """

    deployment: str
    replicas: int
    is_least: bool
    slept: str | None = None


def _counts(desired: Desired, own: Own, options: Options) -> Iterator[_Count]:
    for each in own_revisions(desired, own):
        if each.name not in own.held:
            yield _Count(each.name, each.replicas, is_least=False)
    for revision in (each for each in desired.revisions if not each.pool):
        slept = None if revision.slept_at is None else repr(revision.slept_at)
        yield _Count(revision.name, revision.replicas, is_autoscaled(revision, options), slept)
        for kind, its in revision.companions.items():
            yield _Count(companion_name(revision.name, kind), its.replicas, is_companion_autoscaled(its))


class _ChangedError(Exception):
    """A route was changed since it was read: read again."""


def _is_controlled(there: Json) -> bool:
    """Return whether a controller made an object, as KEDA makes autoscalers, with the labels of its target."""
    return any(owner.get("controller") for owner in there["metadata"].get("ownerReferences", ()))


def _is_same(there: Json, manifest: Manifest) -> bool:
    """Return whether an object of a manifest's kind is the manifest's own."""
    return bool(there["metadata"]["name"] == manifest["metadata"]["name"])


def _generation(service: str, routes: Sequence[Json]) -> int:
    """Return the generation of a service's routes; 0 without routes."""
    main: Json = next((route["metadata"] for route in routes if route["metadata"]["name"] == service), {})
    return int(main.get("annotations", {}).get(GENERATION, "0"))
