"""Services that change services, policies and rollouts; every function takes the actor and leaves an audit entry."""

from clusters.services.cluster_selection import (
    cluster_default,
    cluster_local_made,
    cluster_of,
    driver_default,
    measured_on_default,
)
from clusters.services.clusters import cluster_apply, cluster_check, cluster_delete
from clusters.services.prices import cluster_prices_set
from deployments.services.approvals import rollout_approve, rollout_reject, rollout_withdraw
from deployments.services.contracts import check_reason
from deployments.services.dry_run import cluster_plan, policy_plan, rollout_plan, service_plan
from deployments.services.gpu_assignment import gpus_of
from deployments.services.import_models import import_follow
from deployments.services.policies import policy_apply, policy_delete
from deployments.services.preflight import cluster_patches_try, cluster_try, plan_check, plan_patched, service_check
from deployments.services.restart import service_restart, service_resume, service_stop
from deployments.services.rollback import service_rollback
from deployments.services.rollouts import rollout_abort, rollout_promote, rollout_retry, rollout_start
from deployments.services.services import alias_follow, service_apply, service_delete
from gpus.services.inventory import ClusterGpus, cluster_gpus, cluster_nodes, gpus_ask
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_abort, repartition_approve, repartition_decline, repartition_propose
from model_jobs.builds.result import build_take, build_taker
from model_jobs.builds.service import build_start, build_stop
from model_jobs.trials.service import trial_start, trial_stop
from model_jobs.tunings.service import tuned_file, tuning_start, tuning_stop
from recordings.services.recordings import recording_delete, recording_start, recording_stop, recordings_forget
from recordings.services.replays import replay_start

__all__ = [
    "ClusterGpus",
    "RepartitionOrder",
    "alias_follow",
    "build_start",
    "build_stop",
    "build_take",
    "build_taker",
    "check_reason",
    "cluster_apply",
    "cluster_check",
    "cluster_default",
    "cluster_delete",
    "cluster_gpus",
    "cluster_local_made",
    "cluster_nodes",
    "cluster_of",
    "cluster_patches_try",
    "cluster_plan",
    "cluster_prices_set",
    "cluster_try",
    "driver_default",
    "gpus_ask",
    "gpus_of",
    "import_follow",
    "measured_on_default",
    "plan_check",
    "plan_patched",
    "policy_apply",
    "policy_delete",
    "policy_plan",
    "recording_delete",
    "recording_start",
    "recording_stop",
    "recordings_forget",
    "repartition_abort",
    "repartition_approve",
    "repartition_decline",
    "repartition_propose",
    "replay_start",
    "rollout_abort",
    "rollout_approve",
    "rollout_plan",
    "rollout_promote",
    "rollout_reject",
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
    "trial_start",
    "trial_stop",
    "tuned_file",
    "tuning_start",
    "tuning_stop",
]
