"""`fairlead rotate-secret-key`: secret key rotation of the embedded platform, without ending sessions."""

import argparse
import os
from pathlib import Path

from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.up import preparation
from fairlead_cli.up.components import environment
from fairlead_cli.up.home import Home, home_path, locked, new_secret_key, prepare, write_atomic


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `rotate-secret-key` takes."""
    parser.add_argument(
        "--home",
        type=Path,
        default=home_path(),
        help="folder of `fairlead up` (FAIRLEAD_HOME, else .fairlead here or above)",
    )


def rotate(call: Call) -> None:
    """Replaces the secret key while nothing runs, and encrypts stored data under the new one.

    A file keeps the earlier key until everything is encrypted with the new one; the next run finishes an interrupted
    one.
    """
    path = call.options.home.resolve()
    if os.environ.get("FAIRLEAD_SECRET_KEY") or os.environ.get("FAIRLEAD_SECRET_KEY_FILE"):
        raise CliError(
            "the secret key is set by FAIRLEAD_SECRET_KEY or FAIRLEAD_SECRET_KEY_FILE; change it there, name the one "
            "before in FAIRLEAD_SECRET_KEY_FALLBACKS, and run `python -m django secrets_reseal`"
        )
    if not Home(path).secret_key.is_file():
        raise CliError(f"{path} holds no secret key; name the folder of `fairlead up` with --home")
    home = prepare(path)
    with locked(home):
        _replace(home)
        variables = environment(home, url="http://127.0.0.1:8080", gateway_url="http://127.0.0.1:8090")
        preparation.migrate(variables)
        changed = preparation.manage(["secrets_reseal", "--stopped"], variables).strip()
        home.earlier_secret_keys.unlink()
    call.done(f"{home.secret_key} is new; encrypted or signed again with it: {changed}", home=str(home.path))


def _replace(home: Home) -> None:
    """Make a new key, unless the present one is new already; the one before is on disk first."""
    present, earlier = home.secret_key.read_text(encoding="utf-8"), home.earlier_secret_keys
    if not earlier.exists():
        write_atomic(earlier, present, mode=0o600)
    if earlier.read_text(encoding="utf-8") == present:
        write_atomic(home.secret_key, new_secret_key(), mode=0o600)
