"""`fairlead rotate-secret-key` on a home that nothing runs in; `tests/runbooks` does it to a platform that serves."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_cli.up.home import locked, prepare

Fairlead = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAIRLEAD_DATABASE_URL", "FAIRLEAD_SECRET_KEY", "FAIRLEAD_SECRET_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_the_key_is_another_and_the_one_before_is_forgotten(fairlead: Fairlead, tmp_path: Path) -> None:
    home = prepare(tmp_path)
    before = home.secret_key.read_text()
    code, said, _ = fairlead("rotate-secret-key", "--home", str(tmp_path), "-o", "json")
    assert (code, json.loads(said)) == (0, {"home": str(tmp_path)})
    assert home.secret_key.read_text() != before
    assert home.secret_key.stat().st_mode & 0o777 == 0o600
    assert not home.earlier_secret_keys.exists()


@pytest.mark.parametrize("had_the_new_key", [True, False])
def test_one_that_was_interrupted_is_finished(
    fairlead: Fairlead, tmp_path: Path, migrated: Path, had_the_new_key: bool
) -> None:
    home = prepare(tmp_path)
    shutil.copyfile(migrated, tmp_path / "fairlead.sqlite3")
    present = home.secret_key.read_text()
    home.earlier_secret_keys.write_text("e" * 40 if had_the_new_key else present)
    assert fairlead("rotate-secret-key", "--home", str(tmp_path))[0] == 0
    assert (home.secret_key.read_text() == present) is had_the_new_key
    assert not home.earlier_secret_keys.exists()


def test_it_is_refused_where_it_would_do_nothing_or_harm(
    fairlead: Fairlead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "holds no secret key" in fairlead("rotate-secret-key", "--home", str(tmp_path / "none"))[2]
    home = prepare(tmp_path)
    with locked(home):
        assert "already running" in fairlead("rotate-secret-key", "--home", str(tmp_path))[2]
    monkeypatch.setenv("FAIRLEAD_SECRET_KEY_FILE", "/etc/key")
    assert "FAIRLEAD_SECRET_KEY_FALLBACKS" in fairlead("rotate-secret-key", "--home", str(tmp_path))[2]
