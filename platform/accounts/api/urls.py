"""Tokens, and who the caller is."""

from django.urls import path

from accounts.api import views

app_name = "accounts_api"
urlpatterns = [
    path("tokens", views.TokenListView.as_view(), name="token-list"),
    path("tokens/<int:token_id>", views.TokenDetailView.as_view(), name="token-detail"),
    path("whoami", views.WhoAmIView.as_view(), name="whoami"),
]
