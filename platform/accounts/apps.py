"""Users, tokens and the audit log."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    label = "accounts"

    def ready(self) -> None:
        from accounts.api import schema  # noqa: F401, PLC0415 - registers itself with drf-spectacular
