"""URLs of the pages of services and rollouts."""

from django.urls import path

from clusters.web import cluster_edit_views
from clusters.web import cluster_views as platform_views
from deployments.web import live_updates
from deployments.web.policies import views as policy_views
from deployments.web.services import config_views, deploy_views, log_views, views
from deployments.web.try_page import views as try_views
from events.web import webhook_views
from model_jobs.builds import web
from model_jobs.trials import web as trial_views
from model_jobs.tunings import web as tuning_views
from recordings.web import recording_views

app_name = "deployments"
urlpatterns = [
    path("", views.home, name="home"),
    path("stream", live_updates.home_stream, name="home-stream"),
    path("services/", views.service_list_page, name="service-list"),
    path("services/stream", live_updates.service_list_stream, name="service-list-stream"),
    path("services/<str:namespace>/<str:name>/", views.service_detail_page, name="service-detail"),
    path("services/<str:namespace>/<str:name>/stream", live_updates.service_stream, name="service-stream"),
    path("services/<str:namespace>/<str:name>/config/", config_views.service_config_page, name="service-config"),
    path("services/<str:namespace>/<str:name>/config/look", config_views.service_config_look, name="config-look"),
    path("services/<str:namespace>/<str:name>/config/apply", config_views.service_config_apply, name="config-apply"),
    path(
        "services/<str:namespace>/<str:name>/replicas/<str:replica>/log",
        log_views.replica_log_page,
        name="replica-log",
    ),
    path("services/<str:namespace>/<str:name>/recordings/", recording_views.recording_list_page, name="recording-list"),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/",
        recording_views.recording_detail_page,
        name="recording-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stream",
        live_updates.recording_stream,
        name="recording-stream",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stop",
        recording_views.recording_stop_action,
        name="recording-stop",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/delete",
        recording_views.recording_delete_action,
        name="recording-delete",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/replay",
        recording_views.replay_start_action,
        name="replay-start",
    ),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>/",
        recording_views.replay_detail_page,
        name="replay-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>/stream",
        live_updates.replay_stream,
        name="replay-stream",
    ),
    path("services/<str:namespace>/<str:name>/rollback", views.service_rollback_action, name="service-rollback"),
    path("services/<str:namespace>/<str:name>/manage/<slug:verb>", views.service_action, name="service-action"),
    path("deploy/<str:model>/<int:number>/", deploy_views.deploy_page, name="deploy"),
    path("deploy/<str:model>/<int:number>/rollout", deploy_views.deploy_action, name="deploy-rollout"),
    path("deploy/<str:model>/<int:number>/service", deploy_views.service_create_action, name="deploy-service"),
    path("policies/", policy_views.policy_list_page, name="policy-list"),
    path("policies/new", policy_views.policy_page, name="policy-new"),
    path("policies/look", policy_views.policy_look, name="policy-look"),
    path("policies/fill", policy_views.policy_fill, name="policy-fill"),
    path("policies/apply", policy_views.policy_apply_action, name="policy-apply"),
    path("policies/<str:name>/", policy_views.policy_page, name="policy-detail"),
    path("policies/<str:name>/delete", policy_views.policy_delete_action, name="policy-delete"),
    path("models/<str:model>/versions/<int:number>/try/", try_views.try_page, name="try"),
    path("models/<str:model>/versions/<int:number>/try/send", try_views.try_send_action, name="try-send"),
    path("models/<str:model>/versions/<int:number>/try/request.json", try_views.try_request_file, name="try-request"),
    path("models/<str:model>/versions/<int:number>/builds/", web.build_list_page, name="build-list"),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/",
        web.build_detail_page,
        name="build-detail",
    ),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/stream",
        live_updates.build_stream,
        name="build-stream",
    ),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/stop",
        web.build_stop_action,
        name="build-stop",
    ),
    path("models/<str:model>/versions/<int:number>/tunings/", tuning_views.tuning_list_page, name="tuning-list"),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/",
        tuning_views.tuning_detail_page,
        name="tuning-detail",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/stream",
        live_updates.tuning_stream,
        name="tuning-stream",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/stop",
        tuning_views.tuning_stop_action,
        name="tuning-stop",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/look",
        tuning_views.tuning_look_action,
        name="tuning-look",
    ),
    path(
        "models/<str:model>/versions/<int:number>/try/trials/start", trial_views.trial_start_action, name="trial-start"
    ),
    path("models/<str:model>/versions/<int:number>/try/trials/<int:trial_id>/", trial_views.trial_page, name="trial"),
    path(
        "models/<str:model>/versions/<int:number>/try/trials/<int:trial_id>/stop",
        trial_views.trial_stop_action,
        name="trial-stop",
    ),
    path("platform/", platform_views.platform_page, name="platform"),
    path("platform/clusters/new", cluster_edit_views.cluster_edit_page, name="cluster-new"),
    path("platform/clusters/fill", cluster_edit_views.cluster_fill_action, name="cluster-fill"),
    path("platform/clusters/look", cluster_edit_views.cluster_look_action, name="cluster-look"),
    path("platform/clusters/apply", cluster_edit_views.cluster_apply_action, name="cluster-apply"),
    path("platform/clusters/<str:name>/file", cluster_edit_views.cluster_edit_page, name="cluster-file"),
    path("platform/clusters/<str:name>/file/fill", cluster_edit_views.cluster_fill_action, name="cluster-file-fill"),
    path("platform/clusters/<str:name>/file/look", cluster_edit_views.cluster_look_action, name="cluster-file-look"),
    path("platform/clusters/<str:name>/file/apply", cluster_edit_views.cluster_apply_action, name="cluster-file-apply"),
    path("platform/clusters/<str:name>/delete", cluster_edit_views.cluster_delete_action, name="cluster-delete"),
    path("platform/clusters/<str:name>/", platform_views.cluster_page, name="cluster-detail"),
    path("platform/clusters/<str:name>/check", platform_views.cluster_check_page, name="cluster-check"),
    path("platform/clusters/<str:name>/prices", platform_views.cluster_prices_action, name="cluster-prices"),
    path("platform/clusters/<str:name>/gpus", platform_views.cluster_gpus_page, name="cluster-gpus"),
    path(
        "platform/clusters/<str:name>/repartitions",
        platform_views.repartition_propose_action,
        name="repartition-propose",
    ),
    path(
        "platform/clusters/<str:name>/repartitions/<int:repartition_id>/<slug:verb>",
        platform_views.repartition_action,
        name="repartition-action",
    ),
    path("platform/clusters/<str:name>/gpus/stream", live_updates.gpu_stream, name="cluster-gpus-stream"),
    path("webhooks/", webhook_views.webhook_list_page, name="webhook-list"),
    path("webhooks/<int:webhook_id>/", webhook_views.webhook_detail_page, name="webhook-detail"),
    path("webhooks/<int:webhook_id>/secret", webhook_views.webhook_secret_action, name="webhook-secret"),
    path("webhooks/<int:webhook_id>/switch", webhook_views.webhook_switch_action, name="webhook-switch"),
    path("webhooks/<int:webhook_id>/delete", webhook_views.webhook_delete_action, name="webhook-delete"),
    path("webhooks/<int:webhook_id>/test", webhook_views.webhook_test_action, name="webhook-test"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", webhook_views.delivery_fragment, name="delivery"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhook_views.delivery_repeat_action,
        name="delivery-repeat",
    ),
    path(
        "services/<str:namespace>/<str:name>/rollouts/<int:rollout_id>/",
        views.rollout_detail_page,
        name="rollout-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/rollouts/<int:rollout_id>/stream",
        live_updates.rollout_stream,
        name="rollout-stream",
    ),
    path("rollouts/<int:rollout_id>/approvals/<slug:verb>", views.rollout_approval_action, name="rollout-approval"),
    path("rollouts/<int:rollout_id>/<slug:verb>", views.rollout_action, name="rollout-action"),
]
