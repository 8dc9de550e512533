"""Changes of rollouts."""

from datetime import datetime

from deployments.models import Rollout


def rollout_start(*, namespace: str, name: str, version: str, policy: str | None, actor: str, now: datetime) -> Rollout:
    """Start a rollout of a service to another model version; one in progress is superseded."""
    raise NotImplementedError


def rollout_promote(*, rollout_id: int, actor: str, now: datetime) -> Rollout:
    """Leave the present pause; raises InvalidTransition unless the rollout is paused."""
    raise NotImplementedError


def rollout_abort(*, rollout_id: int, actor: str, now: datetime) -> Rollout:
    """Give all traffic back to stable; raises InvalidTransition if the rollout is over."""
    raise NotImplementedError


def rollout_retry(*, rollout_id: int, actor: str, now: datetime) -> Rollout:
    """Begin a degraded or aborted rollout again at step 0."""
    raise NotImplementedError
