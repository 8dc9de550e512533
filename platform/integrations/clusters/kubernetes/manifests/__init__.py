"""Kubernetes manifests of a service.

A pure function of the desired state, the operator's options and the shares that can be given now:

    render(desired, shares, options)
    ├── once         ServiceAccount, NetworkPolicy, ConfigMap with the shares of taps
    ├── a revision   Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler
    ├── its transformer, if any: the same four, named `<revision>-transformer`
    └── routes       HTTPRoute and GRPCRoute, of the service, of each version, of the preview
"""

from collections.abc import Mapping

from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.manifests.jobs.job import job
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.manifests.patched import patched
from integrations.clusters.kubernetes.manifests.refused import refuse_unknown
from integrations.clusters.kubernetes.manifests.routes.routes import routes
from integrations.clusters.kubernetes.manifests.scaling.autoscaler import autoscaler, refuse_unmeasured
from integrations.clusters.kubernetes.manifests.workloads import deployment, taps
from integrations.clusters.kubernetes.manifests.workloads.transformer import transformer
from integrations.clusters.kubernetes.options import Options

__all__ = ["Manifest", "job", "render"]


def render(desired: Desired, shares: Mapping[str, int], options: Options) -> list[Manifest]:
    """Return the objects in their order of application.

    Args:
        shares: percent of requests that each revision gets now.

    Raises:
        InvalidInput: `desired` has something impossible on Kubernetes, by name.
    """
    refuse_unknown(desired)
    refuse_unmeasured(desired, options)
    made = [
        deployment.service_account(desired, options),
        deployment.network_policy(desired, options),
        *taps.shares(desired, options),
    ]
    for revision in desired.revisions:
        made.append(deployment.deployment(desired, revision, options))
        made.append(deployment.service(desired, revision))
        made.append(deployment.disruption_budget(desired, revision))
        scaled = autoscaler(desired, revision, options)
        made += [] if scaled is None else [scaled]
        made += transformer(desired, revision, options)
    if not any(shares.values()):
        made.append(deployment.service_without_endpoints(desired))
    return patched(desired, made + routes(desired, shares, options))
