"""The database of a home, prepared beside the processes that wait for it."""

import os
import select
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.up.components import environment
from fairlead_cli.up.home import Home, prepare
from fairlead_cli.up.preparation import Preparation
from tests.servers.template import copy_sqlite

DEADLINE_S = 120.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in [name for name in os.environ if name.startswith(("FAIRLEAD_", "DJANGO_"))]:
        monkeypatch.delenv(name)
    made = prepare(tmp_path / ".fairlead")
    copy_sqlite(made.path / "fairlead.sqlite3")
    return made


def over(preparation: Preparation) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not preparation.is_over:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_open(gate: int) -> bool:
    return bool(select.select([gate], [], [], 0)[0])


def test_what_waits_begins_when_the_database_is_prepared_and_the_token_is_there(home: Home) -> None:
    home.watches.touch()
    preparation = Preparation(home, environment(home, url="http://a:1", gateway_url="http://a:2"))
    preparation.begin()
    over(preparation)
    assert not is_open(preparation.gate)

    token = preparation.finish()

    assert token == home.token.read_text().strip()
    assert is_open(preparation.gate)
    assert not home.watches.exists(), "there is no cluster to watch"
    with closing(sqlite3.connect(home.path / "fairlead.sqlite3")) as database:
        assert database.execute("SELECT count(*) FROM accounts_apitoken").fetchone() == (1,)


def test_a_failure_is_a_sentence_and_lets_nothing_begin(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_MAX_ARTIFACT_BYTES", "lots")
    preparation = Preparation(home, environment(home, url="http://a:1", gateway_url="http://a:2"))
    preparation.begin()
    over(preparation)

    with pytest.raises(CliError, match="`django prepare_home` failed: FAIRLEAD_MAX_ARTIFACT_BYTES is 'lots'"):
        preparation.finish()
    assert not is_open(preparation.gate)
    preparation.open_gate()
    assert is_open(preparation.gate)
