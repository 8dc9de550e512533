"""Pages of accounts."""

from django.urls import path

from accounts.web import audit, invitations, provider, signin, teams, tokens, users

app_name = "accounts"
urlpatterns = [
    path("signin/", signin.signin, name="signin"),
    path("signin/invitation/<str:secret>", invitations.invitation_page, name="invitation"),
    path("signin/provider/", provider.begin, name="provider-begin"),
    path("signin/provider/back", provider.back, name="provider-back"),
    path("signin/provider/signout", provider.signout, name="provider-signout"),
    path("signout/", signin.signout, name="signout"),
    path("teams/", teams.team_list_page, name="team-list"),
    path("teams/create", teams.team_create_action, name="team-create"),
    path("teams/<str:team>/", teams.team_detail_page, name="team-detail"),
    path("teams/<str:team>/delete", teams.team_delete_action, name="team-delete"),
    path("teams/<str:team>/quota", teams.quota_action, name="team-quota"),
    path("teams/<str:team>/members", teams.member_set_action, name="member-set"),
    path("teams/<str:team>/members/remove", teams.member_delete_action, name="member-delete"),
    path("teams/<str:team>/demand", teams.demand_action, name="team-demand"),
    path("teams/<str:team>/owned/give", teams.ownership_action, {"verb": "give"}, name="ownership-give"),
    path("teams/<str:team>/owned/take", teams.ownership_action, {"verb": "take"}, name="ownership-take"),
    path("users/", users.user_list_page, name="user-list"),
    path("users/<path:user>/switch", users.user_switch_action, name="user-switch"),
    path("users/<path:user>/invite", users.user_invite_action, name="user-invite"),
    path("users/<path:user>/free", users.user_free_action, name="user-free"),
    path("users/<path:user>/", users.user_detail_page, name="user-detail"),
    path("tokens/", tokens.token_list_page, name="token-list"),
    path("tokens/<int:token_id>/revoke", tokens.token_revoke_action, name="token-revoke"),
    path("audit/", audit.audit_list_page, name="audit-list"),
    path("audit/export", audit.audit_export, name="audit-export"),
]
