"""What the chart's images do on this machine: the tree's own control plane, Debian's PostgreSQL and Redis."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster._support.node import postgres_image
from tests.cluster._support.node.pod import Image
from tests.cluster.harness import REAL_RUNTIME, image_of
from tests.servers.parts import MissingPartError
from tests.servers.postgres import program_of
from tests.servers.redis import server_program

ROOT = Path(__file__).parents[4]
_MIGRATION = """from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("deployments", "{before}")]
    operations = [migrations.RunSQL("{sql}", migrations.RunSQL.noop)]
"""


_EVERYWHERE = ("--host=", "--host=0.0.0.0")
"""As the chart has web listen, and as that of release 0.1.0 did."""


def control_plane(tree: Path = ROOT) -> Image:
    """Return the image `fairlead/control-plane` made of a tree's code."""

    def command(argv: Sequence[str], ip: str) -> Sequence[str]:
        if argv[0] != "python":
            return argv
        own = [f"--host={ip}" if word in _EVERYWHERE else word for word in argv[1:]]
        path = f"PYTHONPATH={tree / 'platform'}"
        return ["env", path, "PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1", sys.executable, *own]

    return command


def serving_runtime(variables: Mapping[str, str]) -> Image:
    """Return the image `fairlead/serving-runtime` of the code that variables lead to; without any, of this tree's."""
    present = image_of(REAL_RUNTIME)
    return lambda argv, ip: ["env", *(f"{name}={value}" for name, value in variables.items()), *present(argv, ip)]


def postgres(argv: Sequence[str], ip: str) -> Sequence[str]:
    """Be the image `postgres`: a server where the command line is empty, else a client of it by its socket."""
    if argv:
        by_socket = 'PGHOST=$(sed -n 5p "$PGDATA/postmaster.pid") exec "$0" "$@"'
        return ["sh", "-c", by_socket, program_of(argv[0]), *argv[1:]]
    return ["env", f"PYTHONPATH={ROOT / 'platform'}:{ROOT}", sys.executable, postgres_image.__file__, ip]


def redis(argv: Sequence[str], ip: str) -> Sequence[str]:
    """Be the image `redis`."""
    assert argv[0] == "redis-server"
    return [server_program(), *argv[1:], "--bind", ip]


def missing() -> None:
    """Raise MissingPartError where the machine cannot be these images."""
    program_of("initdb")
    server_program()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        raise MissingPartError("pods find names by a mount namespace of their own, which takes the right CAP_SYS_ADMIN")


def later_version(folder: Path, *, sql: str, asgi: str | None = None) -> Path:
    """Return a copy of the tree's control plane with one more migration, which runs a statement.

    Args:
        folder: where it is made; its name is the migration's too.
        asgi: what `fairlead/asgi.py`, which the chart names, says in that version.
    """
    shutil.copytree(ROOT / "platform", folder / "platform", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "frontend").symlink_to(ROOT / "frontend")
    migrations = folder / "platform" / "deployments" / "migrations"
    before = max(path.stem for path in migrations.glob("[0-9]*.py"))
    number = int(re.match(r"\d+", before)[0]) + 1  # type: ignore[index] # the glob says so
    (migrations / f"{number:04}_{folder.name}.py").write_text(_MIGRATION.format(before=before, sql=sql))
    if asgi is not None:
        (folder / "platform" / "fairlead" / "asgi.py").write_text(asgi)
    return folder
