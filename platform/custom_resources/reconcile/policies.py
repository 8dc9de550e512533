"""Reconciler of RolloutPolicy objects: each is the policy file of the policy that has its name.

Policies are the installation's, so their objects are in namespaces of the team `default`, which alone changes policies.
Of several objects of one name the first that was followed is the policy; another one has to say the same.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime

from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.selectors import owning_team
from clusters.models import Cluster
from common.errors import Conflict, FairleadError, NotFound, NotPermitted, Unavailable
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import following, retry_after
from custom_resources.views.status import policy_status
from deployments.models import RolloutPolicy
from deployments.services import policy_apply, policy_delete
from integrations.clusters.kubernetes.custom_resources import CustomResources

KIND = "RolloutPolicy"


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
    said = hashlib.sha256(json.dumps([found.spec, found.takes_over], sort_keys=True).encode()).hexdigest()
    is_new = (said, found.uid) != (row.digest, row.uid)
    if is_new or (row.retry_at is not None and row.retry_at <= now):
        row.uid = found.uid
        try:
            _check_team(namespace)
            _check_free(found, row)
            _check_first(row, said)
            policy_apply(document={**found.spec, "name": name}, name=name, actor=actor, now=now)
        except Unavailable:
            raise
        except FairleadError as error:
            problem = " ".join((error.message, *error.further))
            row.retry_at, row.problem = retry_after(row, problem, now=now, is_new=is_new), problem
        else:
            row.retry_at, row.problem = None, ""
        row.digest = said
        row.save()
    status = policy_status(row.problem, before=found.status, generation=found.generation, now=now)
    if status != found.status:
        objects.set_status(KIND, namespace, name, status)


def _check_team(namespace: str) -> None:
    team = owning_team(kind=Owned.NAMESPACE, name=namespace)
    if team != DEFAULT_TEAM:
        raise NotPermitted(
            f"policies are the installation's, and namespace {namespace} is that of team {team}; have the object in a "
            f"namespace of team {DEFAULT_TEAM}"
        )


def _check_free(found: Object, row: ResourceObject) -> None:
    """Raise Conflict where a policy of the name is there that no object made, and the object is not to take it over."""
    is_known = (row.pk is not None and not row.problem) or ResourceObject.objects.filter(
        kind=KIND, name=found.name, problem=""
    ).exclude(pk=row.pk).exists()
    if not (is_known or found.takes_over) and RolloutPolicy.objects.filter(name=found.name).exists():
        raise Conflict(
            f"policy {found.name} is there already, and was not made by an object; annotate this one with "
            'fairlead.dev/take-over: "true" to have it be the policy, or give it another name'
        )


def _check_first(row: ResourceObject, said: str) -> None:
    others = ResourceObject.objects.filter(kind=KIND, name=row.name, problem="").exclude(pk=row.pk)
    first = others.select_related("cluster").order_by("pk").first()
    if first is not None and (row.pk is None or first.pk < row.pk) and first.digest != said:
        raise Conflict(
            f"policy {row.name} is that of the object {first.namespace}/{first.name} on cluster {first.cluster.name}, "
            "which says something else; give this one another name"
        )


def _forget(row: ResourceObject, *, actor: str, now: datetime) -> None:
    """Delete the policy of an object that is gone, unless another object has it; one in use stays until it is not."""
    others = ResourceObject.objects.filter(kind=KIND, name=row.name, problem="").exclude(pk=row.pk)
    if not row.problem and not others.exists():
        try:
            policy_delete(name=row.name, actor=actor, now=now)
        except NotFound:
            pass
        except Conflict as error:
            row.retry_at = retry_after(row, error.message, now=now, is_new=False)
            row.save(update_fields=["retry_at"])
            return
    row.delete()
