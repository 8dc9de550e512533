"""Rollout policy queries."""

from django.db.models import QuerySet

from common.errors import NotFound
from deployments.models import RolloutPolicy


def policy_query() -> QuerySet[RolloutPolicy]:
    """Return all policies."""
    return RolloutPolicy.objects.all()


def policy_get(*, name: str) -> RolloutPolicy:
    """Return one policy; raises NotFound."""
    policy = RolloutPolicy.objects.filter(name=name).first()
    if policy is None:
        raise NotFound(f"there is no policy {name!r}")
    return policy
