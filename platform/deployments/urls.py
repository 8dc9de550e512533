"""Pages of services and rollouts."""

from django.urls import path

from deployments import (
    config_views,
    deploy_views,
    events,
    log_views,
    platform_views,
    policy_views,
    views,
    webhook_views,
)

app_name = "deployments"
urlpatterns = [
    path("", views.home, name="home"),
    path("stream", events.home_stream, name="home-stream"),
    path("services/", views.service_list_page, name="service-list"),
    path("services/stream", events.service_list_stream, name="service-list-stream"),
    path("services/<str:namespace>/<str:name>/", views.service_detail_page, name="service-detail"),
    path("services/<str:namespace>/<str:name>/stream", events.service_stream, name="service-stream"),
    path("services/<str:namespace>/<str:name>/config/", config_views.service_config_page, name="service-config"),
    path("services/<str:namespace>/<str:name>/config/look", config_views.service_config_look, name="config-look"),
    path("services/<str:namespace>/<str:name>/config/apply", config_views.service_config_apply, name="config-apply"),
    path(
        "services/<str:namespace>/<str:name>/replicas/<str:replica>/log",
        log_views.replica_log_page,
        name="replica-log",
    ),
    path("services/<str:namespace>/<str:name>/rollback", views.service_rollback_action, name="service-rollback"),
    path("deploy/<str:model>/<int:number>/", deploy_views.deploy_page, name="deploy"),
    path("deploy/<str:model>/<int:number>/rollout", deploy_views.deploy_action, name="deploy-rollout"),
    path("deploy/<str:model>/<int:number>/service", deploy_views.service_create_action, name="deploy-service"),
    path("policies/", policy_views.policy_list_page, name="policy-list"),
    path("policies/new", policy_views.policy_page, name="policy-new"),
    path("policies/look", policy_views.policy_look, name="policy-look"),
    path("policies/apply", policy_views.policy_apply_action, name="policy-apply"),
    path("policies/<str:name>/", policy_views.policy_page, name="policy-detail"),
    path("policies/<str:name>/delete", policy_views.policy_delete_action, name="policy-delete"),
    path("platform/", platform_views.platform_page, name="platform"),
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
    path("platform/clusters/<str:name>/gpus/stream", events.gpu_stream, name="cluster-gpus-stream"),
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
        events.rollout_stream,
        name="rollout-stream",
    ),
    path("rollouts/<int:rollout_id>/approvals/<slug:verb>", views.rollout_approval_action, name="rollout-approval"),
    path("rollouts/<int:rollout_id>/<slug:verb>", views.rollout_action, name="rollout-action"),
]
