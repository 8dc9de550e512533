"""Tokens, the audit log, and who the caller is."""

from django.urls import path

from accounts.api import views

app_name = "accounts_api"
urlpatterns = [
    path("tokens", views.TokenListView.as_view(), name="token-list"),
    path("tokens/<int:token_id>", views.TokenDetailView.as_view(), name="token-detail"),
    path("audit", views.AuditListView.as_view(), name="audit-list"),
    path("whoami", views.WhoAmIView.as_view(), name="whoami"),
]
