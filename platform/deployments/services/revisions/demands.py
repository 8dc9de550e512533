"""Demands of teams and namespaces, where a service gets new content: what serves already goes on."""

from accounts.domain.roles import Owned
from accounts.selectors.demands import demands_on
from common.errors import Conflict
from common.images import has_digest
from deployments.domain.policy import Policy, stored_policy
from deployments.domain.policy.demands import unmet
from deployments.domain.service_file import ServiceSpec
from deployments.domain.service_file.companion import image_of
from deployments.models import InferenceService, Revision, RolloutPolicy
from deployments.selectors import stable_before
from registry.models import ModelVersion


def check_demands(service: InferenceService, policy: Policy | RolloutPolicy | None) -> None:
    """Raise Conflict where the policy does not meet a demand; the sentence names the demand.

    Args:
        policy: None for a service without one.
    """
    demands = demands_on(Owned.NAMESPACE, [service.namespace])[service.namespace]
    if not demands:
        return
    found = stored_policy(policy.document) if isinstance(policy, RolloutPolicy) else policy
    if why := unmet(demands, found):
        raise Conflict(f"service {service} cannot change so: {why}", field="policy")


def check_digests(service: InferenceService, spec: ServiceSpec) -> None:
    """Raise Conflict where images by their digest are demanded and the file names one by a tag alone."""
    tagged = next(((kind, its) for kind, its in spec.companions.items() if not has_digest(its.image)), None)
    if tagged is None:
        return
    demands = demands_on(Owned.NAMESPACE, [service.namespace])[service.namespace]
    demand = next((each for each in demands if each.digests), None)
    if demand is not None:
        kind, its = tagged
        raise Conflict(
            f"{demand.of} demands images by their digest, and {image_of(kind)} is {its.image!r}; name it as "
            "REPOSITORY@sha256:…, which a registry shows at a push",
            field=image_of(kind),
        )


def check_rolled_out(service: InferenceService, old: Revision | None, version: ModelVersion) -> None:
    """Raise Conflict where approvals are demanded and a service that served gets another version without a rollout.

    Args:
        old: its stable revision, which does not serve now.
    """
    served = old if old is None or old.served_until is not None else stable_before(stable=old)
    if served is None or served.model_version_id == version.pk:
        return
    demands = demands_on(Owned.NAMESPACE, [service.namespace])[service.namespace]
    demand = next((each for each in demands if each.approvals), None)
    if demand is not None:
        raise Conflict(
            f"{demand.of} demands approvals of rollouts, and service {service} does not serve, so {version} would come "
            "without a rollout; let it serve first, then roll the version out"
        )
