"""Addresses of the registry under `/api/v1/`."""

from django.urls import path

from registry.api import governance, imports, offers, storage, views

app_name = "registry_api"
urlpatterns = [
    path("storage", storage.StorageView.as_view(), name="storage"),
    path("storage/collect", storage.StorageCollectView.as_view(), name="storage-collect"),
    path("models", views.ModelListView.as_view(), name="model-list"),
    path("models/<str:name>", views.ModelDetailView.as_view(), name="model-detail"),
    path("models/<str:name>/versions", views.VersionListView.as_view(), name="version-list"),
    path("models/<str:name>/versions/check", offers.VersionCheckView.as_view(), name="version-check"),
    path("models/<str:name>/versions/<int:number>", views.VersionDetailView.as_view(), name="version-detail"),
    path("models/<str:name>/versions/<int:number>/artifact", views.ArtifactView.as_view(), name="version-artifact"),
    path("models/<str:name>/versions/<int:number>/recheck", views.RecheckView.as_view(), name="version-recheck"),
    path("models/<str:name>/imports", imports.ImportListView.as_view(), name="import-list"),
    path("models/<str:name>/imports/<int:import_id>", imports.ImportDetailView.as_view(), name="import-detail"),
    path("models/<str:name>/aliases", views.AliasListView.as_view(), name="alias-list"),
    path("models/<str:name>/aliases/<str:alias>", views.AliasDetailView.as_view(), name="alias-detail"),
    path(
        "models/<str:name>/aliases/<str:alias>/protection",
        governance.ProtectedAliasView.as_view(),
        name="alias-protection",
    ),
    path("models/<str:name>/approval", governance.ApprovalRuleView.as_view(), name="approval-rule"),
    path("kept-rules", governance.KeptRulesListView.as_view(), name="kept-rules-list"),
    path("models/<str:name>/kept-rules", governance.KeptRulesView.as_view(), name="kept-rules"),
    path(
        "models/<str:name>/versions/<int:number>/approval", governance.ApprovalView.as_view(), name="version-approval"
    ),
]
