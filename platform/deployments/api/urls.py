"""Policies, services, rollouts."""

from django.urls import path

from deployments.api import approvals, comparison, evidence, objectives, scraping, traffic, views
from deployments.api.workloads.artifacts import WorkloadArtifactView
from deployments.api.workloads.exchanges import WorkloadExchangesView
from deployments.api.workloads.requests import WorkloadRequestView
from deployments.api.workloads.results import WorkloadResultView

urlpatterns = [
    path(
        "clusters/<str:cluster>/workloads/artifacts/<str:digest>",
        WorkloadArtifactView.as_view(),
        name="workload-artifact",
    ),
    path("clusters/<str:cluster>/workloads/exchanges", WorkloadExchangesView.as_view(), name="workload-exchanges"),
    path(
        "clusters/<str:cluster>/workloads/requests/<uuid:request_id>",
        WorkloadRequestView.as_view(),
        name="workload-request",
    ),
    path(
        "clusters/<str:cluster>/workloads/results/<uuid:result_id>",
        WorkloadResultView.as_view(),
        name="workload-result",
    ),
    path("policies", views.PolicyListView.as_view(), name="policy-list"),
    path("policies/<str:name>", views.PolicyDetailView.as_view(), name="policy-detail"),
    path("prometheus/targets", scraping.ScrapeTargetsView.as_view(), name="scrape-targets"),
    path("services", views.ServiceListView.as_view(), name="service-list-api"),
    path("services/<str:namespace>/<str:name>", views.ServiceDetailView.as_view(), name="service-detail-api"),
    path(
        "services/<str:namespace>/<str:name>/replicas/<str:replica>/metrics",
        scraping.ReplicaMetricsView.as_view(),
        name="replica-metrics",
    ),
    path(
        "services/<str:namespace>/<str:name>/objectives",
        objectives.ServiceObjectivesView.as_view(),
        name="service-objectives",
    ),
    path("services/<str:namespace>/<str:name>/traffic", traffic.ServiceTrafficView.as_view(), name="service-traffic"),
    path("services/<str:namespace>/<str:name>/rollback", views.ServiceRollbackView.as_view(), name="service-rollback"),
    path("services/<str:namespace>/<str:name>/stop", views.ServiceStopView.as_view(), name="service-stop"),
    path("services/<str:namespace>/<str:name>/resume", views.ServiceResumeView.as_view(), name="service-resume"),
    path("services/<str:namespace>/<str:name>/restart", views.ServiceRestartView.as_view(), name="service-restart"),
    path("services/<str:namespace>/<str:name>/revisions", views.RevisionListView.as_view(), name="revision-list"),
    path("services/<str:namespace>/<str:name>/events", views.EventListView.as_view(), name="event-list"),
    path("services/<str:namespace>/<str:name>/rollouts", views.RolloutListView.as_view(), name="rollout-list"),
    path("rollouts/<int:rollout_id>", views.RolloutDetailView.as_view(), name="rollout-detail"),
    path("rollouts/<int:rollout_id>/approvals", approvals.RolloutApprovalsView.as_view(), name="rollout-approvals"),
    path("rollouts/<int:rollout_id>/reject", approvals.RolloutRejectView.as_view(), name="rollout-reject"),
    path("rollouts/<int:rollout_id>/comparison", comparison.RolloutComparisonView.as_view(), name="rollout-comparison"),
    path("rollouts/<int:rollout_id>/evidence", evidence.RolloutEvidenceView.as_view(), name="rollout-evidence"),
    path("rollouts/<int:rollout_id>/promote", views.RolloutPromoteView.as_view(), name="rollout-promote"),
    path("rollouts/<int:rollout_id>/abort", views.RolloutAbortView.as_view(), name="rollout-abort"),
    path("rollouts/<int:rollout_id>/retry", views.RolloutRetryView.as_view(), name="rollout-retry"),
]
