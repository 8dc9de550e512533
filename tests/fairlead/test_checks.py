"""Bad settings end the start with an id and a hint."""

from pathlib import Path

from pytest_django import Settings

from fairlead.checks import settings_are_usable


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
