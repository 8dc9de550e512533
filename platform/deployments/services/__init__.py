"""What changes services, policies and rollouts; every function is told who asks and leaves an audit entry."""

from deployments.services.approving import rollout_approve, rollout_reject, rollout_withdraw
from deployments.services.builds import build_start, build_stop
from deployments.services.built import build_take, build_taker
from deployments.services.checking import cluster_patches_try, cluster_try, plan_check, plan_patched, service_check
from deployments.services.choosing import (
    cluster_default,
    cluster_local_made,
    cluster_of,
    driver_default,
    measured_on_default,
)
from deployments.services.clusters import cluster_apply, cluster_check, cluster_delete
from deployments.services.contracts import check_reason
from deployments.services.gpus import ClusterGpus, cluster_gpus, cluster_nodes, gpus_ask
from deployments.services.importing import import_follow
from deployments.services.lacking import RepartitionOrder
from deployments.services.placing import gpus_of
from deployments.services.policies import policy_apply, policy_delete
from deployments.services.preview import cluster_plan, policy_plan, rollout_plan, service_plan
from deployments.services.prices import cluster_prices_set
from deployments.services.recordings import recording_delete, recording_start, recording_stop, recordings_forget
from deployments.services.repartitions import (
    repartition_abort,
    repartition_approve,
    repartition_decline,
    repartition_propose,
)
from deployments.services.replays import replay_start
from deployments.services.restarting import service_restart, service_resume, service_stop
from deployments.services.rollback import service_rollback
from deployments.services.rollouts import rollout_abort, rollout_promote, rollout_retry, rollout_start
from deployments.services.serving import alias_follow, service_apply, service_delete
from deployments.services.trials import trial_start, trial_stop
from deployments.services.tunings import tuned_file, tuning_start, tuning_stop

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
