"""Pages of keys."""

from django.urls import path

from access.web import keys

app_name = "access"
urlpatterns = [
    path("keys/", keys.key_list_page, name="key-list"),
    path("keys/<str:name>/limit", keys.key_limit_action, name="key-limit"),
    path("keys/<str:name>/rotate", keys.key_rotate_action, name="key-rotate"),
    path("keys/<str:name>/revoke", keys.key_revoke_action, name="key-revoke"),
]
