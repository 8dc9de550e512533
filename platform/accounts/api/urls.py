"""Tokens, teams, the audit log, and who the caller is."""

from django.urls import path

from accounts.api import (  # schema registers itself with drf-spectacular
    demands,
    quotas,
    schema,  # noqa: F401
    teams,
    users,
    views,
)

app_name = "accounts_api"
urlpatterns = [
    path("tokens", views.TokenListView.as_view(), name="token-list"),
    path("tokens/<int:token_id>", views.TokenDetailView.as_view(), name="token-detail"),
    path("audit", views.AuditListView.as_view(), name="audit-list"),
    path("audit/export", views.AuditExportView.as_view(), name="audit-export"),
    path("audit/verification", views.AuditVerificationView.as_view(), name="audit-verification"),
    path("teams", teams.TeamListView.as_view(), name="team-list"),
    path("teams/<str:team>", teams.TeamDetailView.as_view(), name="team-detail"),
    path("teams/<str:team>/quota", quotas.QuotaView.as_view(), name="team-quota"),
    path("teams/<str:team>/members", teams.MemberListView.as_view(), name="member-list"),
    path("teams/<str:team>/members/<str:user>", teams.MemberDetailView.as_view(), name="member-detail"),
    path("teams/<str:team>/owned", teams.OwnedListView.as_view(), name="owned-list"),
    path("teams/<str:team>/namespaces/<str:name>", teams.NamespaceDetailView.as_view(), name="owned-namespace"),
    path("teams/<str:team>/models/<str:name>", teams.ModelDetailView.as_view(), name="owned-model"),
    path("teams/<str:team>/demand", demands.TeamDemandView.as_view(), name="team-demand"),
    path("namespaces/<str:namespace>/demand", demands.NamespaceDemandView.as_view(), name="namespace-demand"),
    path("users", users.UserListView.as_view(), name="user-list"),
    path("users/<str:user>", users.UserDetailView.as_view(), name="user-detail"),
    path("users/<str:user>/invitation", users.UserInvitationView.as_view(), name="user-invitation"),
    path("users/<str:user>/identity", users.UserIdentityView.as_view(), name="user-identity"),
    path("whoami", views.WhoAmIView.as_view(), name="whoami"),
]
