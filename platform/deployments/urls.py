"""URLs of the pages of services and rollouts."""

from django.urls import path

from deployments.web import streams
from deployments.web.policies import views as policy_views
from deployments.web.services import config_views, deploy_views, log_views, views
from deployments.web.try_page import views as try_views

urlpatterns = [
    path("services/", views.service_list_page, name="service-list"),
    path("services/stream", streams.service_list_stream, name="service-list-stream"),
    path("services/<str:namespace>/<str:name>/", views.service_detail_page, name="service-detail"),
    path("services/<str:namespace>/<str:name>/stream", streams.service_stream, name="service-stream"),
    path("services/<str:namespace>/<str:name>/config/", config_views.service_config_page, name="service-config"),
    path("services/<str:namespace>/<str:name>/config/look", config_views.service_config_look, name="config-look"),
    path("services/<str:namespace>/<str:name>/config/apply", config_views.service_config_apply, name="config-apply"),
    path(
        "services/<str:namespace>/<str:name>/replicas/<str:replica>/log",
        log_views.replica_log_page,
        name="replica-log",
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
    path(
        "services/<str:namespace>/<str:name>/rollouts/<int:rollout_id>/",
        views.rollout_detail_page,
        name="rollout-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/rollouts/<int:rollout_id>/stream",
        streams.rollout_stream,
        name="rollout-stream",
    ),
    path("rollouts/<int:rollout_id>/approvals/<slug:verb>", views.rollout_approval_action, name="rollout-approval"),
    path("rollouts/<int:rollout_id>/<slug:verb>", views.rollout_action, name="rollout-action"),
]
