"""What the image `postgres` does, with the machine's own PostgreSQL: `python postgres_image.py ADDRESS`.

It reads the image's variables: POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE, PGDATA. Where there are no data yet
it makes them; then it serves until SIGTERM, which means to PostgreSQL what the image's SIGINT does. The folder above
PGDATA has to be one that the user `postgres` can reach.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

from tests.servers.postgres import program_of

# PostgreSQL refuses to run as root; what is started like this ends with this process.
_AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=KILL"]


def main(address: str) -> int:
    data = Path(os.environ["PGDATA"])
    sockets = Path(tempfile.mkdtemp(prefix="fairlead-postgres-", dir="/tmp"))
    for folder in (data.parent, sockets):
        shutil.chown(folder, "postgres", "postgres")
    try:
        if not (data / "PG_VERSION").exists():
            _make(data, sockets / "password")
        return _serve(data, sockets, address)
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def _make(data: Path, password: Path) -> None:
    user, database = os.environ["POSTGRES_USER"], os.environ["POSTGRES_DB"]
    password.write_text(Path(os.environ["POSTGRES_PASSWORD_FILE"]).read_text())
    shutil.chown(password, "postgres", "postgres")
    how = ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-sync"]
    _run("initdb", "-D", str(data), "-U", user, f"--pwfile={password}", *how)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all all scram-sha-256\n")
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("fsync = off\n")
    _run("postgres", "--single", "-D", str(data), "postgres", said=f'CREATE DATABASE "{database}"\n')


def _run(name: str, *arguments: str, said: str = "") -> None:
    subprocess.run([*_AS_POSTGRES, program_of(name), *arguments], input=said, text=True, cwd="/", check=True)


def _serve(data: Path, sockets: Path, address: str) -> int:
    settings = [f"listen_addresses={address}", "port=5432", f"unix_socket_directories={sockets}"]
    command = [program_of("postgres"), "-D", str(data), *(word for each in settings for word in ("-c", each))]
    with subprocess.Popen([*_AS_POSTGRES, *command], cwd="/") as server:

        def end(_number: int, _frame: FrameType | None) -> None:
            server.send_signal(signal.SIGINT)

        signal.signal(signal.SIGTERM, end)
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
