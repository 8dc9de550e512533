"""Bad settings end the start with an id and a hint."""

from pathlib import Path

import pytest
from pytest_django import Settings

from fairlead.checks import prometheus_can_be_trusted, settings_are_usable


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
