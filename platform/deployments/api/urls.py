"""Policies, services, rollouts."""

from django.urls import path

from clusters.api import clusters, prices
from deployments.api import approvals, comparison, evidence, scraping, traffic, views
from deployments.api.workloads.artifacts import WorkloadArtifactView
from deployments.api.workloads.exchanges import WorkloadExchangesView
from deployments.api.workloads.requests import WorkloadRequestView
from deployments.api.workloads.results import WorkloadResultView
from events.api import webhooks
from gpus.api import gpus, repartitions
from model_jobs.builds import api
from model_jobs.trials import api as trials
from model_jobs.tunings import api as tunings
from recordings.api import recordings, replays

urlpatterns = [
    path("clusters", clusters.ClusterListView.as_view(), name="cluster-list"),
    path("clusters/<str:name>", clusters.ClusterDetailView.as_view(), name="cluster-detail"),
    path("clusters/<str:name>/check", clusters.ClusterCheckView.as_view(), name="cluster-check"),
    path("clusters/<str:name>/gpus", gpus.ClusterGpusView.as_view(), name="cluster-gpus"),
    path("clusters/<str:name>/repartitions", repartitions.RepartitionListView.as_view(), name="repartition-list"),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>",
        repartitions.RepartitionDetailView.as_view(),
        name="repartition-detail",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/approve",
        repartitions.RepartitionApproveView.as_view(),
        name="repartition-approve",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/decline",
        repartitions.RepartitionDeclineView.as_view(),
        name="repartition-decline",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/abort",
        repartitions.RepartitionAbortView.as_view(),
        name="repartition-abort",
    ),
    path("clusters/<str:name>/prices", prices.ClusterPricesView.as_view(), name="cluster-prices"),
    path("clusters/<str:name>/events", clusters.ClusterEventListView.as_view(), name="cluster-event-list"),
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
    path("models/<str:name>/versions/<int:number>/builds", api.BuildListView.as_view(), name="build-list"),
    path(
        "models/<str:name>/versions/<int:number>/builds/<int:build_id>",
        api.BuildDetailView.as_view(),
        name="build-detail",
    ),
    path("models/<str:name>/versions/<int:number>/trials", trials.TrialListView.as_view(), name="trial-list"),
    path(
        "models/<str:name>/versions/<int:number>/trials/<int:trial_id>",
        trials.TrialDetailView.as_view(),
        name="trial-detail",
    ),
    path("models/<str:name>/versions/<int:number>/tunings", tunings.TuningListView.as_view(), name="tuning-list"),
    path(
        "models/<str:name>/versions/<int:number>/tunings/<int:tuning_id>",
        tunings.TuningDetailView.as_view(),
        name="tuning-detail",
    ),
    path(
        "models/<str:name>/versions/<int:number>/tunings/<int:tuning_id>/apply",
        tunings.TuningApplyView.as_view(),
        name="tuning-apply",
    ),
    path("webhooks", webhooks.WebhookListView.as_view(), name="webhook-list"),
    path("webhooks/<int:webhook_id>", webhooks.WebhookDetailView.as_view(), name="webhook-detail"),
    path("webhooks/<int:webhook_id>/deliveries", webhooks.DeliveryListView.as_view(), name="delivery-list"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>",
        webhooks.DeliveryDetailView.as_view(),
        name="delivery-detail",
    ),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhooks.DeliveryRepeatView.as_view(),
        name="delivery-repeat",
    ),
    path("webhooks/<int:webhook_id>/secret", webhooks.WebhookSecretView.as_view(), name="webhook-secret"),
    path("webhooks/<int:webhook_id>/test", webhooks.WebhookTestView.as_view(), name="webhook-test"),
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
    path("services/<str:namespace>/<str:name>/traffic", traffic.ServiceTrafficView.as_view(), name="service-traffic"),
    path("services/<str:namespace>/<str:name>/rollback", views.ServiceRollbackView.as_view(), name="service-rollback"),
    path("services/<str:namespace>/<str:name>/stop", views.ServiceStopView.as_view(), name="service-stop"),
    path("services/<str:namespace>/<str:name>/resume", views.ServiceResumeView.as_view(), name="service-resume"),
    path("services/<str:namespace>/<str:name>/restart", views.ServiceRestartView.as_view(), name="service-restart"),
    path("services/<str:namespace>/<str:name>/revisions", views.RevisionListView.as_view(), name="revision-list"),
    path("services/<str:namespace>/<str:name>/events", views.EventListView.as_view(), name="event-list"),
    path("services/<str:namespace>/<str:name>/rollouts", views.RolloutListView.as_view(), name="rollout-list"),
    path(
        "services/<str:namespace>/<str:name>/recordings", recordings.RecordingListView.as_view(), name="recording-list"
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>",
        recordings.RecordingDetailView.as_view(),
        name="recording-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stop",
        recordings.RecordingStopView.as_view(),
        name="recording-stop",
    ),
    path("services/<str:namespace>/<str:name>/replays", replays.ReplayListView.as_view(), name="replay-list"),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>",
        replays.ReplayDetailView.as_view(),
        name="replay-detail",
    ),
    path("rollouts/<int:rollout_id>", views.RolloutDetailView.as_view(), name="rollout-detail"),
    path("rollouts/<int:rollout_id>/approvals", approvals.RolloutApprovalsView.as_view(), name="rollout-approvals"),
    path("rollouts/<int:rollout_id>/reject", approvals.RolloutRejectView.as_view(), name="rollout-reject"),
    path("rollouts/<int:rollout_id>/comparison", comparison.RolloutComparisonView.as_view(), name="rollout-comparison"),
    path("rollouts/<int:rollout_id>/evidence", evidence.RolloutEvidenceView.as_view(), name="rollout-evidence"),
    path("rollouts/<int:rollout_id>/promote", views.RolloutPromoteView.as_view(), name="rollout-promote"),
    path("rollouts/<int:rollout_id>/abort", views.RolloutAbortView.as_view(), name="rollout-abort"),
    path("rollouts/<int:rollout_id>/retry", views.RolloutRetryView.as_view(), name="rollout-retry"),
]
