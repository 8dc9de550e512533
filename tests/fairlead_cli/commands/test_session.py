"""`fairlead login` and `fairlead whoami`."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli import config

Fairlead = Callable[..., tuple[int, str, str]]


def test_a_login_is_checked_and_kept(
    fairlead: Fairlead, api: Any, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRLEAD_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO("flt_mine\n"))
    api.on("GET /whoami", {"user": "ann", "scope": "write"})

    code, said, _ = fairlead("login")

    assert (code, said.split(";")[0]) == (0, f"signed in at {api.url}")
    assert api.seen[0].headers["authorization"] == "Bearer flt_mine"
    assert config.resolve(None, {}) == config.Access(api.url, "flt_mine")


def test_a_refused_token_is_not_kept(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.refuse("GET /whoami", 401, "the token has ended")

    assert fairlead("login", "--token", "flt_old") == (1, "", "the token has ended\n")
    assert config.resolve(None, {}).token == ""


def test_no_token_at_all_is_said(fairlead: Fairlead, at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    code, _, complained = fairlead("login")

    assert (code, complained.split(";")[0]) == (1, "no token given")


def test_whoami_shows_what_the_api_says(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /whoami", {"user": "ann", "token_name": "ci"})

    assert fairlead("whoami") == (0, "user        ann\ntoken name  ci\n", "")
