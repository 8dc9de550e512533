"""Pages of models and versions."""

from django.urls import path

from registry.web import compare_views, governance_views, import_views, storage_views, views

app_name = "registry"
urlpatterns = [
    path("storage/", storage_views.storage_page, name="storage"),
    path("storage/collect", storage_views.storage_collect_action, name="storage-collect"),
    path("models/", views.model_list_page, name="model-list"),
    path("models/import", import_views.import_start_action, name="import-start"),
    path("models/<str:name>/", views.model_detail_page, name="model-detail"),
    path("models/<str:name>/tags", views.tag_action, name="model-tag"),
    path("models/<str:name>/description", views.description_action, name="model-describe"),
    path("models/<str:name>/delete", views.model_delete_action, name="model-delete"),
    path("models/<str:name>/kept-rules/remove", governance_views.kept_rules_action, name="model-forget-rules"),
    path("models/<str:name>/protection", governance_views.protection_action, name="model-protect"),
    path("models/<str:name>/approval", governance_views.approval_rule_action, name="model-approval"),
    path("models/<str:name>/imports/<int:import_id>/stop", import_views.import_stop_action, name="import-stop"),
    path("models/<str:name>/compare", compare_views.model_compare_page, name="model-compare"),
    path("models/<str:name>/versions/<int:number>/", views.version_detail_page, name="version-detail"),
    path("models/<str:name>/versions/<int:number>/compare", compare_views.version_compare_page, name="version-compare"),
    path("models/<str:name>/versions/<int:number>/aliases", views.alias_action, name="version-alias"),
    path("models/<str:name>/versions/<int:number>/approval", governance_views.approval_action, name="version-approval"),
    path("models/<str:name>/versions/<int:number>/description", views.description_action, name="version-describe"),
    path("models/<str:name>/versions/<int:number>/delete", views.version_delete_action, name="version-delete"),
    path("models/<str:name>/versions/<int:number>/recheck", views.version_recheck_action, name="version-recheck"),
    path("models/<str:name>/versions/<int:number>/tags", views.tag_action, name="version-tag"),
]
