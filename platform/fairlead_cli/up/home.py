"""Home folder of the embedded mode, as the command line uses it, and the lock that one `fairlead up` holds on it."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.errors import CliError

_NAME = ".fairlead"


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below FAIRLEAD_HOME; `path` is absolute."""

    path: Path

    @property
    def secret_key(self) -> Path:
        return self.path / "secret-key"

    @property
    def earlier_secret_keys(self) -> Path:
        """Present during a secret key rotation: decrypts values that are still encrypted by the previous key."""
        return self.path / "secret-key-fallbacks"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def defaults(self) -> Path:
        """The release whose defaults hold; absent in homes of releases before 0.2, which keep theirs."""
        return self.path / "defaults"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def watches(self) -> Path:
        """Present once the control plane knows a Kubernetes cluster to watch."""
        return self.run / "watches"

    @property
    def endpoints(self) -> Path:
        """The file with the addresses that `up` serves, for commands in the same folder."""
        return self.path / "endpoints.json"


def home_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return FAIRLEAD_HOME, else the `.fairlead` of this folder or the nearest one above it, else `.fairlead` here.

    One above counts only if it is a home and this user's own: any user can make a `/tmp/.fairlead`, whose address would
    get the token of every command below it.
    """
    if named := environ.get("FAIRLEAD_HOME"):
        return Path(named)
    here = Path(_NAME)
    if here.is_dir():
        return here
    try:
        above = Path.cwd().parents
    except OSError:  # the working folder was deleted
        return here
    return next((folder / _NAME for folder in above if _is_own_home(folder / _NAME)), here)


def _is_own_home(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid() and any((path / file).is_file() for file in ("secret-key", "token"))
    except OSError:
        return False


def write_atomic(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace `path` by `text` atomically; no reader ever sees half of it, nor a secret with a wider mode."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def new_secret_key() -> str:
    """Return the content of a new `secret-key` file."""
    return secrets.token_urlsafe(50) + "\n"


def prepare(path: Path) -> Home:
    """Create the folder with the files that every start needs, private to its owner; existing files stay."""
    home = Home(path.resolve())
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (home.logs, home.run, home.path / "broker" / "queue", home.path / "broker" / "control"):
            folder.mkdir(parents=True, exist_ok=True)
        if not home.secret_key.exists():
            write_atomic(home.defaults, "0.2\n")
            write_atomic(home.secret_key, new_secret_key(), mode=0o600)
    except OSError as error:
        raise CliError(f"{home.path} cannot be used as home: {error.strerror} ({error.filename})") from error
    return home


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """Lock the folder for this process; the kernel releases the lock when the process ends in any way."""
    with (home.path / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise CliError(
                f"Fairlead is already running in {home.path} (process {holder}); "
                f"end it with `kill {holder}` or give this one another folder with --home"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def write_endpoints(home: Home, *, url: str, gateway_url: str) -> None:
    """Record that the platform in this folder answers, its addresses, and its process."""
    endpoints = {"url": url, "gateway_url": gateway_url, "pid": os.getpid()}
    write_atomic(home.endpoints, json.dumps(endpoints) + "\n")
