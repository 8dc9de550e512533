"""Reconciler of RolloutPolicy objects: each is the policy file of the policy that has its name.

Policies are the installation's, so their objects are in namespaces of the team `default`, which alone changes policies.
Of several objects of one name the first that was followed is the policy; another one has to say the same.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.db.models import QuerySet

from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.selectors import owning_team
from clusters.models import Cluster
from common.errors import Conflict, NotFound, NotPermitted
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import attempt, following, is_due
from custom_resources.views.status import policy_status
from deployments.domain.policy import Policy, parse_policy, policy_json
from deployments.models import RolloutPolicy
from deployments.services import policy_apply, policy_delete
from integrations.clusters.kubernetes.custom_resources import CustomResources

KIND = "RolloutPolicy"
_IN_USE = timedelta(minutes=1)


def policy_follow(
    cluster: Cluster, objects: CustomResources, namespace: str, name: str, *, clock: Callable[[], datetime]
) -> None:
    """Bring the policy of an object to what the object says, and write its status; raises Unavailable."""
    item = objects.get(KIND, namespace, name)
    row = following(cluster, KIND, namespace, name)
    now, actor = clock(), f"kubernetes:{cluster.name}/{namespace}/{name}"
    if item is None:
        if row is not None:
            _forget(row, actor=actor, now=now)
        return
    found = Object.of(item)
    row = row or ResourceObject(cluster=cluster, kind=KIND, namespace=namespace, name=name, uid=found.uid)
    if row is None or row.uid != found.uid:
        row = row or ResourceObject(cluster=cluster, kind=KIND, namespace=namespace, name=name)
        row.uid, row.digest = found.uid, ""
    said = hashlib.sha256(json.dumps([found.spec, found.takes_over], sort_keys=True).encode()).hexdigest()
    if is_due(row, said, now):
        attempt(row, said, lambda: partial(_apply, found, row, actor=actor, now=now), now=now)
    status = policy_status(row.problem, before=found.status, generation=found.generation, now=now)
    if status != found.status:
        objects.set_status(KIND, namespace, name, status)


def _apply(found: Object, row: ResourceObject, *, actor: str, now: datetime) -> None:
    _check_team(found.namespace)
    document = {**found.spec, "name": found.name}
    is_same = _check_free(found, row, parse_policy(document, name=found.name))
    if not is_same:
        policy_apply(document=document, name=found.name, actor=actor, now=now)
    row.acted = found.generation


def _check_team(namespace: str) -> None:
    team = owning_team(kind=Owned.NAMESPACE, name=namespace)
    if team != DEFAULT_TEAM:
        raise NotPermitted(
            f"policies are the installation's, and namespace {namespace} is that of team {team}; have the object in a "
            f"namespace of team {DEFAULT_TEAM}"
        )


def _check_free(found: Object, row: ResourceObject, policy: Policy) -> bool:
    """Return whether another object keeps the policy already, and says the same.

    Raises:
        Conflict: another object, API or pages keep it, and it is not this object's to change.
    """
    saved = RolloutPolicy.objects.filter(name=found.name).first()
    if saved is None:
        return False
    first = _keepers(found.name).select_related("cluster").order_by("pk").first()
    if first is None and not found.takes_over:
        raise Conflict(
            f"policy {found.name} is there already, and was not made by an object; annotate this one with "
            'fairlead.dev/take-over: "true" to have it be the policy, or give it another name'
        )
    if first is None or first.pk == row.pk:
        return False
    if saved.document != policy_json(policy):
        raise Conflict(
            f"policy {found.name} is that of the object {first.namespace}/{first.name} on cluster "
            f"{first.cluster.name}, which says something else; give this one another name"
        )
    return True


def _keepers(name: str) -> QuerySet[ResourceObject]:
    """Return the objects by which a policy was saved."""
    return ResourceObject.objects.filter(kind=KIND, name=name, acted__gt=0)


def _forget(row: ResourceObject, *, actor: str, now: datetime) -> None:
    """Delete the policy of an object that is gone, unless another object keeps it; one in use stays until it is not."""
    if row.acted and not _keepers(row.name).exclude(pk=row.pk).exists():
        try:
            policy_delete(name=row.name, actor=actor, now=now)
        except NotFound:
            pass
        except Conflict:
            row.retry_at = now + _IN_USE
            row.save(update_fields=["retry_at"])
            return
    row.delete()
