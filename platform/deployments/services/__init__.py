"""Services that change services, policies and rollouts; every function takes the actor and leaves an audit entry."""

from deployments.services.dry_run import policy_plan, rollout_plan, service_plan
from deployments.services.files.preflight import access_by_default, plan_check, plan_patched, service_check
from deployments.services.files.service_files import service_apply
from deployments.services.model_follow import model_follow
from deployments.services.policies import policy_apply, policy_delete
from deployments.services.restart import service_restart, service_resume, service_stop
from deployments.services.revisions.gpu_assignment import gpus_of
from deployments.services.rollout.approvals import rollout_approve, rollout_reject, rollout_withdraw
from deployments.services.rollout.contracts import check_reason
from deployments.services.rollout.renewal import rollout_renew
from deployments.services.rollout.rollback import service_rollback
from deployments.services.rollout.rollouts import rollout_abort, rollout_promote, rollout_retry, rollout_start
from deployments.services.services import service_delete

__all__ = [
    "access_by_default",
    "check_reason",
    "gpus_of",
    "model_follow",
    "plan_check",
    "plan_patched",
    "policy_apply",
    "policy_delete",
    "policy_plan",
    "rollout_abort",
    "rollout_approve",
    "rollout_plan",
    "rollout_promote",
    "rollout_reject",
    "rollout_renew",
    "rollout_retry",
    "rollout_start",
    "rollout_withdraw",
    "service_apply",
    "service_check",
    "service_delete",
    "service_plan",
    "service_restart",
    "service_resume",
    "service_rollback",
    "service_stop",
]
