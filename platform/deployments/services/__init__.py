"""What changes services, policies and rollouts. Every function takes `now` and who asks (`actor`), and leaves an audit entry."""

from deployments.services.policies import policy_apply, policy_delete
from deployments.services.rollouts import rollout_abort, rollout_promote, rollout_retry, rollout_start
from deployments.services.serving import service_apply, service_delete

__all__ = [
    "policy_apply",
    "policy_delete",
    "rollout_abort",
    "rollout_promote",
    "rollout_retry",
    "rollout_start",
    "service_apply",
    "service_delete",
]
