"""A SQLite database with all tables, made once: a file in the cache outside of the work tree, for later runs too.

It is named by a digest of what it was made from, and made under a lock, since several processes may want it first.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.servers.clients import cache

PLATFORM = Path(__file__).parents[2] / "platform"
_MADE_FROM = ("*/migrations/*.py", "*/models.py", "*/models/*.py", "common/encryption.py", "common/db/trigrams.py")
"""Models too: Django's content types and permissions are named after them."""
_KEPT_FILES = 5
_TIMEOUT_S = 300


def template_key() -> str:
    """Return a digest of all that decides how the tables look, so that a change of it makes another template."""
    digest = hashlib.sha256(version("Django").encode())
    for file in sorted(file for pattern in _MADE_FROM for file in PLATFORM.glob(pattern)):
        digest.update(f"{file.relative_to(PLATFORM)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def copy_sqlite(to: Path) -> None:
    """Write a database with all tables and no rows but those of migrations, as `migrate` leaves it in a new home."""
    folder = cache() / "databases"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = folder / f"{template_key()}.sqlite3"
        if not template.exists():
            unfinished = folder / "unfinished.sqlite3"
            unfinished.unlink(missing_ok=True)
            _migrate(unfinished)
            unfinished.rename(template)
            for old in sorted(folder.glob("*.sqlite3"), key=lambda file: -file.stat().st_mtime)[_KEPT_FILES:]:
                old.unlink()
        shutil.copyfile(template, to)


def _migrate(database: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))}
    variables = {
        "FAIRLEAD_SECRET_KEY": "only-for-the-template-" + "x" * 40,
        "FAIRLEAD_HOME": str(database.parent),
        "FAIRLEAD_DATABASE_URL": f"sqlite:///{database}",
    }
    subprocess.run(
        [sys.executable, str(PLATFORM.parent / "manage.py"), "migrate", "--noinput", "--verbosity", "0"],
        env=kept | variables,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=_TIMEOUT_S,
    )
