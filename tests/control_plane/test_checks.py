"""Bad settings end the start with an id and a hint."""

from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from accounts.domain.audit_sinks import SyslogAddress
from control_plane.checks import (
    audit_sinks_can_be_trusted,
    people_can_sign_in,
    prometheus_can_be_trusted,
    settings_are_usable,
)


def test_django_finds_nothing_in_the_code() -> None:
    """`fairlead up` does not ask it, since that takes half a second at each start."""
    call_command("check", fail_level="WARNING")


def test_a_short_secret_key_is_refused_with_what_to_do(settings: Settings) -> None:
    settings.SECRET_KEY = "short"
    (error,) = [found for found in settings_are_usable() if found.id == "fairlead.E001"]
    assert error.msg == "FAIRLEAD_SECRET_KEY has 5 characters, fewer than 32."
    assert "FAIRLEAD_SECRET_KEY_FILE" in str(error.hint)


def test_a_missing_front_end_is_named_with_what_to_do(settings: Settings, tmp_path: Path) -> None:
    settings.ROOT = tmp_path
    (error,) = [found for found in settings_are_usable() if found.id == "fairlead.E002"]
    assert "make setup" in str(error.hint)


def test_usable_settings_give_nothing(settings: Settings, tmp_path: Path) -> None:
    settings.ROOT = tmp_path
    (tmp_path / "frontend" / "dist").mkdir(parents=True)
    (tmp_path / "frontend" / "dist" / "app.js").touch()
    settings.SECRET_KEY = "a long random text, longer than 31 characters"
    assert settings_are_usable() == []


@pytest.mark.parametrize(
    ("url", "token", "ca", "ids"),
    [
        pytest.param("", "", "", [], id="no Prometheus is fine"),
        pytest.param("https://prometheus.example.com", "s3cret", "", [], id="a token over https is fine"),
        pytest.param("http://127.0.0.1:9090", "s3cret", "", [], id="a token that stays on the machine is fine"),
        pytest.param("http://prometheus:9090", "s3cret", "", ["fairlead.W001"], id="a token over the network is not"),
        pytest.param("", "s3cret", "", ["fairlead.E004"], id="a token for nobody"),
        pytest.param("https://prometheus:9090", "", "no certificate", ["fairlead.E003"], id="a CA that is none"),
    ],
)
def test_how_prometheus_is_asked_is_checked(settings: Settings, url: str, token: str, ca: str, ids: list[str]) -> None:
    settings.PROMETHEUS_URL, settings.PROMETHEUS_TOKEN, settings.PROMETHEUS_CA = url, token, ca
    assert [found.id for found in prometheus_can_be_trusted()] == ids


WHOLE = {"OIDC_ISSUER": "https://sso.example", "OIDC_CLIENT_ID": "fairlead", "OIDC_CLIENT_SECRET": "s3cret"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param({}, [], id="no provider is fine"),
        pytest.param(WHOLE, [], id="a whole one is fine"),
        pytest.param(WHOLE | {"OIDC_ISSUER": "http://127.0.0.1:9"}, [], id="one on the machine is fine"),
        pytest.param(WHOLE | {"OIDC_CLIENT_ID": ""}, ["E005 FAIRLEAD_OIDC_CLIENT_ID is not"], id="no client's name"),
        pytest.param(WHOLE | {"OIDC_CLIENT_SECRET": ""}, ["E005 FAIRLEAD_OIDC_CLIENT_SECRET is not"], id="no secret"),
        pytest.param({"OIDC_CLIENT_ID": "fairlead"}, ["E005 FAIRLEAD_OIDC_ISSUER is not"], id="no provider's address"),
        pytest.param(WHOLE | {"OIDC_SCOPES": ["email"]}, ["E005 openid has to be"], id="a scope without sign-in"),
        pytest.param(
            WHOLE | {"OIDC_GROUPS_CLAIM": "groups"}, ["E005 GROUP_ROLES need each other"], id="groups for nothing"
        ),
        pytest.param({"TOKEN_SIGNIN": False}, ["E005 there is no way to sign in"], id="no way in"),
        pytest.param(WHOLE | {"OIDC_ISSUER": "http://sso.example"}, ["E006 http://"], id="a provider anybody can play"),
    ],
)
def test_how_people_sign_in_is_checked(settings: Settings, given: dict[str, object], told: list[str]) -> None:
    for name, value in given.items():
        setattr(settings, name, value)
    found = [f"{each.id} {each.msg}" for each in people_can_sign_in()]
    assert len(found) == len(told)
    for message, expected in zip(found, told, strict=True):
        code, _, words = expected.partition(" ")
        assert code in message
        assert words in message


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, []),
        ({"SYSLOG": SyslogAddress.of("tls://siem"), "WEBHOOK": "https://a", "WEBHOOK_SECRET": "s"}, []),
        ({"SYSLOG": SyslogAddress.of("tls://siem"), "SYSLOG_CA": "no PEM"}, ["fairlead.E007"]),
        ({"SYSLOG": SyslogAddress.of("tcp://siem"), "SYSLOG_CA": "no PEM"}, ["fairlead.E007", "fairlead.E008"]),
        ({"SYSLOG_CA": "no PEM"}, ["fairlead.E007", "fairlead.E008"]),
        ({"WEBHOOK": "https://a"}, ["fairlead.E009"]),
        ({"WEBHOOK_SECRET": "s"}, ["fairlead.E009"]),
        ({"WEBHOOK": "http://a", "WEBHOOK_SECRET": "s"}, ["fairlead.W002"]),
    ],
)
def test_sinks_of_the_audit_log_need_what_they_are_trusted_by(
    given: dict[str, object], found: list[str], settings: Settings
) -> None:
    for name, value in given.items():
        setattr(settings, f"AUDIT_{name}", value)
    assert [message.id for message in audit_sinks_can_be_trusted()] == found
