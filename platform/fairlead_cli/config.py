"""Connection configuration: the control plane's address and token of a command.

    address   --url, FAIRLEAD_URL, that of `fairlead up` here or above, the last `fairlead login`, 127.0.0.1:8080
    token     FAIRLEAD_TOKEN, the folder's own for the folder's own address, else what `fairlead login` kept for it

A stored token only ever goes to the address it belongs to.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.errors import CliError
from fairlead_cli.up.home import Home, home_path, write_atomic

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Access:
    """Address and token; an empty token means that none was found."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """Stored logins: one token per address, and the address used last."""

    current: str
    tokens: Mapping[str, str]


def credentials_path(environ: Mapping[str, str]) -> Path:
    """Return the path where `fairlead login` stores tokens."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "fairlead" / "credentials"


def read_credentials(path: Path) -> Credentials:
    """Return the stored logins; empty before the first login."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Credentials(str(stored["current"]), {str(url): str(token) for url, token in stored["tokens"].items()})
    except FileNotFoundError:
        return Credentials("", {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(
            f"{path} cannot be read as credentials ({error}); delete it and run `fairlead login` again"
        ) from error


def keep_token(path: Path, access: Access) -> None:
    """Store the token for its address, readable by its owner only, and use the address from now on."""
    known = read_credentials(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stored = {"current": access.url, "tokens": {**known.tokens, access.url: access.token}}
    write_atomic(path, json.dumps(stored, indent=2) + "\n", mode=0o600)


def normalised(url: str) -> str:
    """Return `url` in the one form that is compared and stored; CliError unless it is an http(s) address."""
    if not url.startswith(("http://", "https://")):
        raise CliError(f"{url!r} is no address of a control plane; expected http://HOST:PORT or https://HOST")
    return url.rstrip("/")


def resolve(url: str | None, environ: Mapping[str, str] = os.environ) -> Access:
    """Return the access resolved from the command line (`url`), the environment and the files."""
    home = Home(home_path(environ).resolve())
    known = read_credentials(credentials_path(environ))
    home_url = _home_url(home)
    chosen = normalised(url or environ.get("FAIRLEAD_URL") or home_url or known.current or DEFAULT_URL)
    token = environ.get("FAIRLEAD_TOKEN") or ""
    if not token and chosen == home_url:
        token = home.token.read_text(encoding="utf-8").strip()
    return Access(chosen, token or known.tokens.get(chosen, ""))


def _home_url(home: Home) -> str:
    """Return the address of the platform that runs in `home`; empty without one."""
    if not home.token.exists():
        return ""
    try:
        return normalised(str(json.loads(home.endpoints.read_text(encoding="utf-8"))["url"]))
    except FileNotFoundError:  # it is not running
        return DEFAULT_URL
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CliError(f"{home.endpoints} cannot be read ({error}); start `fairlead up` again") from error
