"""Which control plane, and with which token."""

import json
import stat
from pathlib import Path

import pytest

from fairlead_cli import config
from fairlead_cli.config import Access
from fairlead_cli.errors import CliError

LOCAL, REMOTE = "http://127.0.0.1:8080", "https://fairlead.example.org"


def home(folder: Path, url: str | None = None) -> None:
    (folder / ".fairlead").mkdir()
    (folder / ".fairlead" / "token").write_text("flt_home\n")
    if url:
        (folder / ".fairlead" / "endpoints.json").write_text(json.dumps({"url": url, "pid": 1}))


def signed_in(folder: Path, url: str = REMOTE) -> None:
    config.keep_token(folder / "person" / ".config" / "fairlead" / "credentials", Access(url, "flt_login"))


@pytest.mark.parametrize(
    ("has_home", "home_url", "login", "option", "environ", "expected"),
    [
        pytest.param(False, None, False, None, {}, Access(LOCAL, ""), id="nothing known: this machine, no token"),
        pytest.param(
            True, None, False, None, {}, Access(LOCAL, "flt_home"), id="a home that is down: its default port"
        ),
        pytest.param(
            True, "http://127.0.0.1:9000", True, None, {}, Access("http://127.0.0.1:9000", "flt_home"), id="home first"
        ),
        pytest.param(False, None, True, None, {}, Access(REMOTE, "flt_login"), id="no home: where the login went"),
        pytest.param(
            True,
            None,
            True,
            None,
            {"FAIRLEAD_URL": REMOTE},
            Access(REMOTE, "flt_login"),
            id="the address picks the token",
        ),
        pytest.param(
            True,
            None,
            False,
            None,
            {"FAIRLEAD_URL": REMOTE},
            Access(REMOTE, ""),
            id="a home's token goes to no other address",
        ),
        pytest.param(
            True,
            None,
            True,
            LOCAL + "/",
            {"FAIRLEAD_URL": REMOTE},
            Access(LOCAL, "flt_home"),
            id="the option beats the environment; a slash at the end makes no other address",
        ),
        pytest.param(
            True,
            None,
            True,
            None,
            {"FAIRLEAD_URL": REMOTE, "FAIRLEAD_TOKEN": "flt_env"},
            Access(REMOTE, "flt_env"),
            id="a token in the environment beats all others",
        ),
    ],
)
def test_resolve(
    at_home: Path,
    has_home: bool,
    home_url: str | None,
    login: bool,
    option: str | None,
    environ: dict[str, str],
    expected: Access,
) -> None:
    if has_home:
        home(at_home, home_url)
    if login:
        signed_in(at_home)

    assert config.resolve(option, {"HOME": str(at_home / "person"), **environ}) == expected


def test_home_may_be_named_in_the_environment(at_home: Path) -> None:
    other = at_home / "other"
    other.mkdir()
    home(other)

    assert config.resolve(None, {"FAIRLEAD_HOME": str(other / ".fairlead")}) == Access(LOCAL, "flt_home")


def test_a_home_is_found_from_a_folder_below_it(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home(at_home, "http://127.0.0.1:9000")
    (at_home / "models" / "digits").mkdir(parents=True)
    monkeypatch.chdir(at_home / "models" / "digits")

    assert config.resolve(None, {}) == Access("http://127.0.0.1:9000", "flt_home")


def test_logins_are_kept_per_address_and_for_the_owner_only(at_home: Path) -> None:
    signed_in(at_home)
    signed_in(at_home, LOCAL)

    path = config.credentials_path({})
    kept = config.read_credentials(path)
    assert (kept.current, dict(kept.tokens)) == (LOCAL, {REMOTE: "flt_login", LOCAL: "flt_login"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damaged_credentials_are_named(at_home: Path) -> None:
    signed_in(at_home)
    config.credentials_path({}).write_text("[]")

    with pytest.raises(CliError, match=r"credentials cannot be read .* `fairlead login` again"):
        config.resolve(None, {})


def test_an_address_without_scheme_is_refused(at_home: Path) -> None:
    with pytest.raises(CliError, match=r"'localhost:8080' is no address .* expected http://HOST:PORT"):
        config.resolve("localhost:8080", {})
