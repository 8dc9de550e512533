"""What happens before anything is started: the database's tables, and a token for whoever sits at this machine."""

import re
from collections.abc import Mapping
from pathlib import Path

from fairlead_cli.errors import CliError
from fairlead_cli.up import processes
from fairlead_cli.up.home import Home

_TIMEOUT_S = 120.0
# What Python puts before an exception's message, such as `django.core.exceptions.ImproperlyConfigured: `.
_EXCEPTION = re.compile(r"^(\w+\.)+\w+: ")


def migrate(variables: Mapping[str, str]) -> None:
    """Bring the database to this version's tables."""
    manage(["migrate", "--noinput", "--verbosity", "0"], variables)


def prepare_home(home: Home, variables: Mapping[str, str]) -> str | None:
    """Bring the database to this version's tables and make sure that the token file holds a token that is accepted.

    Clusters are watched where there is one to watch; of one added later the control plane says so.

    Returns:
        The token if it is new, else None.
    """
    before = _content(home.token)
    if manage(["prepare_home", "--token", str(home.token)], variables).strip() == "yes":
        home.watches.touch()
    else:
        home.watches.unlink(missing_ok=True)
    after = _content(home.token)
    return after if after != before else None


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def manage(arguments: list[str], variables: Mapping[str, str]) -> str:
    """Run a Django management command, and return what it printed; CliError with its last line where it failed."""
    done = processes.completed(["-m", "django", *arguments], variables, timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise CliError(f"`django {arguments[0]}` failed: {_EXCEPTION.sub('', last)}")
    return done.stdout
