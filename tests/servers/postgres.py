"""A PostgreSQL of its own on a free port, from the machine's package.

PostgreSQL refuses to run as root; for root its processes run as the user `postgres`, which the package makes.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.servers.parts import free_port, program

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{folder}'
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 60
"""


@dataclass(frozen=True, slots=True)
class Postgres:
    """One server; `stop` and `start` may follow each other, the data and the port stay."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Return the address as Fairlead's setting takes it."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def socket_url(self) -> str:
        """Return the address by the Unix socket, which every network namespace reaches.

        Its database does not exist: each test process makes one of its own on this server, and a program that one
        starts without an address of its own fails.
        """
        return f"postgres://postgres@{quote(str(self.folder), safe='')}:{self.port}/no_default"

    @property
    def is_running(self) -> bool:
        """Return whether it was started and not stopped since."""
        return (self._data / "postmaster.pid").exists()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = ["-o", f"-p {self.port}", "-l", str(self.folder / "log"), "-w", "-t", "60"]
        _run(self.folder, "pg_ctl", "-D", str(self._data), *options, "start")

    def stop(self) -> None:
        """End it at once, as a crash would: connections break in the middle."""
        _run(self.folder, "pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    @property
    def _data(self) -> Path:
        return self.folder / "data"


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Give a running server with an empty database; afterwards nothing of it is left.

    Raises:
        MissingPartError: PostgreSQL is not installed.
    """
    program_of("initdb")
    folder = Path(tempfile.mkdtemp(prefix="fairlead-postgres-"))
    server = Postgres(folder, free_port())
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        _run(folder, "initdb", "-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        with (data / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS.format(folder=folder))
        server.start()
        try:
            yield server
        finally:
            if server.is_running:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def program_of(name: str) -> str:
    """Return one of PostgreSQL's programs; raises MissingPartError."""
    return str(program(name, "postgresql", _folders()))


def _folders() -> Sequence[Path]:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return [*debian, *(Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part)]


def _run(folder: Path, name: str, *arguments: str) -> None:
    """Run one of its programs; what it says goes to a file, since a pipe would stay open in the server."""
    user = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None
    said = folder / f"{name}.out"
    with said.open("w") as output:
        done = subprocess.run(
            [program_of(name), *arguments],
            cwd=folder,
            user=user,
            group=pwd.getpwuid(user).pw_gid if user is not None else None,
            extra_groups=[] if user is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{name} ended with exit code {done.returncode}: {said.read_text()}")
