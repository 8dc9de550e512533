"""Changes of rollout policies."""

from datetime import datetime

from deployments.models import RolloutPolicy


def policy_apply(*, document: object, name: str | None, actor: str, now: datetime) -> tuple[RolloutPolicy, bool]:
    """Make or change the policy that the policy file `document` says; returns it and whether it is new."""
    raise NotImplementedError


def policy_delete(*, name: str, actor: str, now: datetime) -> None:
    """Remove a policy; raises NotFound, and Conflict while a service names it."""
    raise NotImplementedError
