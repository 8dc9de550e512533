"""Kubernetes manifests of a service.

A pure function of the desired state, the operator's options and the shares that can be given now:

    render(desired, shares, options)
    ├── once         ServiceAccount, NetworkPolicies, ConfigMap with the shares of taps; of a pool what `pools.py` says
    ├── a revision   Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler, ResourceClaimTemplate
    ├── its transformer and explainer, if any: the same four, named `<revision>-transformer`, `<revision>-explainer`
    ├── policies     SecurityPolicy and BackendTrafficPolicy, where the gateway checks, allows or limits calls
    └── routes       HTTPRoute and GRPCRoute, of the service, of each version, of the preview

A service in a pool has policies and routes only, and while it has replicas of its own what these need
(`routes/own_replicas.py`).
"""

from collections.abc import Mapping
from dataclasses import replace

from integrations.clusters.base import CallerKeys, Desired
from integrations.clusters.kubernetes.manifests import pools
from integrations.clusters.kubernetes.manifests.jobs.job import job
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.manifests.network.policies import of_service
from integrations.clusters.kubernetes.manifests.patched import patched
from integrations.clusters.kubernetes.manifests.refused import refuse_unknown
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, as_own, earned, own_revisions
from integrations.clusters.kubernetes.manifests.routes.routes import routes
from integrations.clusters.kubernetes.manifests.routes.security_policy import security_policy, withholding_callers
from integrations.clusters.kubernetes.manifests.routes.traffic_policy import traffic_policy
from integrations.clusters.kubernetes.manifests.scaling.autoscaler import autoscaler, refuse_unmeasured
from integrations.clusters.kubernetes.manifests.workloads import claims, deployment, queues, taps
from integrations.clusters.kubernetes.manifests.workloads.companion import companions
from integrations.clusters.kubernetes.options import Options, WakerReference

__all__ = ["Manifest", "deployments", "job", "policies", "render"]


def render(
    desired: Desired,
    shares: Mapping[str, int],
    options: Options,
    *,
    keys: CallerKeys | None = None,
    is_held: bool = False,
    hashes: bool = False,
    waits: bool = False,
    beside_pool: Own | None = None,
) -> list[Manifest]:
    """Return the objects in their order of application: policies before routes.

    Args:
        shares: percent of requests that each revision gets now.
        keys: by which the gateway checks callers, where not everybody may call; without them no token is valid.
        is_held: routes lead to no revision yet, since the gateway has not confirmed the policies.
        hashes: the gateway is an Envoy Gateway, which sends the requests of a service in a pool to the same replica.
        waits: the service may sleep and has no ready replica now, so that the gateway holds its requests.
        beside_pool: own replicas of a service in a pool; None for those that are desired, while the pool answers.

    Raises:
        InvalidInput: `desired` has something impossible on Kubernetes, by name.
    """
    refuse_unknown(desired)
    refuse_unmeasured(desired, options)
    beside = Own(present=earned(desired)) if beside_pool is None else beside_pool
    own = [each for each in desired.revisions if not each.pool] + own_revisions(desired, beside)
    made: list[Manifest] = []
    if own or not desired.revisions or beside.pods_remain:
        made.append(deployment.service_account(desired, options))
        made += [*of_service(desired, options), *taps.shares(desired, options), *pools.of_pool(desired)]
    for revision in own:
        made.append(deployment.deployment(desired, revision, options))
        made.append(deployment.service(desired, revision))
        made.append(deployment.disruption_budget(desired, revision))
        scaled = autoscaler(desired, revision, options)
        made += [] if scaled is None else [scaled]
        made += companions(desired, revision, options)
    if is_held or not any(shares.values()):
        made.append(deployment.service_without_endpoints(desired))
    made = queues.follow_templates([*made, *policies(desired, keys, hashes=hashes, waits=waits, waker=options.waker)])
    routed = replace(desired, revisions=(), preview="") if is_held else desired
    made = claims.with_templates(desired, patched(desired, made + routes(routed, shares, options, beside)))
    if desired.access is not None:
        return made
    return [withholding_callers(each) if each["kind"].endswith("Route") else each for each in made]


def deployments(desired: Desired, options: Options) -> list[Manifest]:
    """Return the Deployments alone, of revisions and their companions; raises as `render` does."""
    refuse_unknown(desired)
    made = []
    own = earned(desired)
    there = [each for each in desired.revisions if not each.pool or each.name in own or each.pod_templates]
    for revision in (as_own(desired, each) if each.pool else each for each in there):
        made.append(deployment.deployment(desired, revision, options))
        made += [each for each in companions(desired, revision, options) if each["kind"] == "Deployment"]
    return patched(desired, queues.follow_templates(made))


def policies(
    desired: Desired,
    keys: CallerKeys | None = None,
    *,
    hashes: bool = False,
    waits: bool = False,
    waker: WakerReference | None = None,
) -> list[Manifest]:
    """Return Envoy Gateway's policies of a service; many services have none. Arguments as `render` takes them."""
    guarded = security_policy(desired, keys or CallerKeys(), waker)
    return [*guarded, *traffic_policy(desired, hashes=hashes, waits=waits)]
