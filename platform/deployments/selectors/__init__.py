"""Selectors of services, revisions and rollouts. Reads only; API and pages show the same values.

The number of queries does not depend on the number of services, revisions or rollouts.
"""

from deployments.selectors.change_marks import change_marks
from deployments.selectors.policies import policy_get, policy_query
from deployments.selectors.revisions import (
    earlier_stable_query,
    outdated_query,
    revision_query,
    revision_views,
    stable_before,
)
from deployments.selectors.rollouts.approvals import approval_tally, rollout_authors
from deployments.selectors.rollouts.comparisons import ComparisonView, comparison_newest, comparison_views
from deployments.selectors.rollouts.evidence import Evidence, Series, evidence
from deployments.selectors.rollouts.rollouts import (
    label_habits_fixed,
    rollout_detail,
    rollout_namespace,
    rollout_of_service,
    rollout_policy,
    rollout_query,
    rollout_siblings,
    rollout_views,
)
from deployments.selectors.services import (
    service_count_by_phase,
    service_detail,
    service_get,
    service_list,
    service_query,
    service_search,
    service_views,
)
from deployments.selectors.traffic.costs import service_cost
from deployments.selectors.traffic.error_budgets import ErrorBudgets, service_error_budgets
from deployments.selectors.traffic.history import TrafficHistory, traffic_history
from deployments.selectors.traffic.recent import traffic_of
from deployments.selectors.traffic.scraping import replica_metrics, scrape_targets
from deployments.selectors.workloads import job_artifact, workload_artifact, workload_service
from deployments.views.shapes import (
    AnalysisRunView,
    ReasonView,
    RequestsView,
    RevisionView,
    RolloutView,
    ServiceView,
    StepView,
)
from deployments.views.traffic import NO_TRAFFIC, Traffic

__all__ = [
    "NO_TRAFFIC",
    "AnalysisRunView",
    "ComparisonView",
    "ErrorBudgets",
    "Evidence",
    "ReasonView",
    "RequestsView",
    "RevisionView",
    "RolloutView",
    "Series",
    "ServiceView",
    "StepView",
    "Traffic",
    "TrafficHistory",
    "approval_tally",
    "change_marks",
    "comparison_newest",
    "comparison_views",
    "earlier_stable_query",
    "evidence",
    "job_artifact",
    "label_habits_fixed",
    "outdated_query",
    "policy_get",
    "policy_query",
    "replica_metrics",
    "revision_query",
    "revision_views",
    "rollout_authors",
    "rollout_detail",
    "rollout_namespace",
    "rollout_of_service",
    "rollout_policy",
    "rollout_query",
    "rollout_siblings",
    "rollout_views",
    "scrape_targets",
    "service_cost",
    "service_count_by_phase",
    "service_detail",
    "service_error_budgets",
    "service_get",
    "service_list",
    "service_query",
    "service_search",
    "service_views",
    "stable_before",
    "traffic_history",
    "traffic_of",
    "workload_artifact",
    "workload_service",
]
