"""System checks: a bad setting ends the start with an id and a hint, never the first request."""

import ssl

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from accounts.domain.audit_sinks import Transport
from common.identifiers import is_confidential
from integrations.syslog import context

TAG = "fairlead"
SHORTEST_SECRET_KEY = 32


@register(TAG)
def settings_are_usable(**_: object) -> list[CheckMessage]:
    """Return an error for each setting the control plane cannot run with."""
    errors: list[CheckMessage] = []
    if len(settings.SECRET_KEY) < SHORTEST_SECRET_KEY:
        errors.append(
            Error(
                f"FAIRLEAD_SECRET_KEY has {len(settings.SECRET_KEY)} characters, fewer than {SHORTEST_SECRET_KEY}.",
                hint="`fairlead up` makes one; else set FAIRLEAD_SECRET_KEY_FILE to a file with a long random text.",
                id="fairlead.E001",
            )
        )
    if not (settings.ROOT / "frontend" / "dist" / "app.js").is_file():
        errors.append(
            Error(
                "The front-end bundle frontend/dist/ is missing.",
                hint="Run `make setup`, which builds it.",
                id="fairlead.E002",
            )
        )
    return errors


@register(TAG)
def prometheus_can_be_trusted(**_: object) -> list[CheckMessage]:
    """Return the errors of the Prometheus settings for rollouts' measurements."""
    found: list[CheckMessage] = []
    if settings.PROMETHEUS_CA:
        try:
            ssl.create_default_context(cadata=settings.PROMETHEUS_CA)
        except (ssl.SSLError, ValueError) as error:
            found.append(
                Error(
                    f"FAIRLEAD_PROMETHEUS_CA is no PEM with certificates: {error}.",
                    hint="Set FAIRLEAD_PROMETHEUS_CA_FILE to a PEM file of the authority that signed its certificate.",
                    id="fairlead.E003",
                )
            )
    if settings.PROMETHEUS_TOKEN and not settings.PROMETHEUS_URL:
        found.append(
            Error(
                "FAIRLEAD_PROMETHEUS_TOKEN is set, but FAIRLEAD_PROMETHEUS_URL is not.",
                hint="Set FAIRLEAD_PROMETHEUS_URL to where Prometheus answers, such as https://prometheus.example.com.",
                id="fairlead.E004",
            )
        )
    elif settings.PROMETHEUS_TOKEN and not is_confidential(settings.PROMETHEUS_URL):
        found.append(
            Warning(
                "FAIRLEAD_PROMETHEUS_TOKEN is sent over http, where others on the way can read it.",
                hint="Let FAIRLEAD_PROMETHEUS_URL begin with https://.",
                id="fairlead.W001",
            )
        )
    return found


@register(TAG)
def audit_sinks_can_be_trusted(**_: object) -> list[CheckMessage]:
    """Return the errors of the settings of the audit log's sinks."""
    found: list[CheckMessage] = []
    if settings.AUDIT_SYSLOG_CA:
        try:
            context(settings.AUDIT_SYSLOG_CA)
        except (ssl.SSLError, ValueError) as error:
            found.append(
                Error(
                    f"FAIRLEAD_AUDIT_SYSLOG_CA is no PEM with certificates: {error}.",
                    hint="Set FAIRLEAD_AUDIT_SYSLOG_CA_FILE to a PEM file of the authority that signed the server's.",
                    id="fairlead.E007",
                )
            )
        if settings.AUDIT_SYSLOG is None or settings.AUDIT_SYSLOG.transport is not Transport.TLS:
            found.append(
                Error(
                    "FAIRLEAD_AUDIT_SYSLOG_CA is set, but FAIRLEAD_AUDIT_SYSLOG does not begin with tls://.",
                    hint="Set FAIRLEAD_AUDIT_SYSLOG to an address such as tls://syslog.example.com:6514.",
                    id="fairlead.E008",
                )
            )
    if bool(settings.AUDIT_WEBHOOK) != bool(settings.AUDIT_WEBHOOK_SECRET):
        found.append(
            Error(
                "FAIRLEAD_AUDIT_WEBHOOK and FAIRLEAD_AUDIT_WEBHOOK_SECRET need each other; one of them is not set.",
                hint="Set FAIRLEAD_AUDIT_WEBHOOK_SECRET_FILE to a file with a long random text.",
                id="fairlead.E009",
            )
        )
    if settings.AUDIT_WEBHOOK and not is_confidential(settings.AUDIT_WEBHOOK):
        found.append(
            Warning(
                "FAIRLEAD_AUDIT_WEBHOOK gets the audit log over http, where others on the way can read it.",
                hint="Let FAIRLEAD_AUDIT_WEBHOOK begin with https://.",
                id="fairlead.W002",
            )
        )
    return found


@register(TAG)
def people_can_sign_in(**_: object) -> list[CheckMessage]:
    """Return the errors of the sign-in provider's settings; empty where none is configured."""
    hint = "docs/how-to/sign-in.md lists what to register at the provider."
    if not settings.OIDC_ISSUER:
        without = [name for name in ("CLIENT_ID", "CLIENT_SECRET") if getattr(settings, f"OIDC_{name}")]
        found = [f"FAIRLEAD_OIDC_{name} is set, but FAIRLEAD_OIDC_ISSUER is not." for name in without]
        if not settings.TOKEN_SIGNIN:
            found.append(
                "FAIRLEAD_TOKEN_SIGNIN is off and FAIRLEAD_OIDC_ISSUER is not set: there is no way to sign in."
            )
        return [Error(message, hint=hint, id="fairlead.E005") for message in found]
    found = [
        f"FAIRLEAD_OIDC_ISSUER is set, but FAIRLEAD_OIDC_{name} is not."
        for name in ("CLIENT_ID", "CLIENT_SECRET")
        if not getattr(settings, f"OIDC_{name}")
    ]
    if "openid" not in settings.OIDC_SCOPES:
        found.append(f"FAIRLEAD_OIDC_SCOPES is {','.join(settings.OIDC_SCOPES)}; openid has to be among them.")
    if bool(settings.OIDC_GROUP_ROLES) != bool(settings.OIDC_GROUPS_CLAIM):
        found.append(
            "FAIRLEAD_OIDC_GROUPS_CLAIM and FAIRLEAD_OIDC_GROUP_ROLES need each other; one of them is not set."
        )
    messages: list[CheckMessage] = [Error(message, hint=hint, id="fairlead.E005") for message in found]
    if not is_confidential(settings.OIDC_ISSUER):
        messages.append(
            Error(
                "FAIRLEAD_OIDC_ISSUER begins with http://: others on the way could sign in as anybody.",
                hint="Let it begin with https://.",
                id="fairlead.E006",
            )
        )
    return messages
