"""`fairlead backup` and `fairlead restore`: the embedded platform's state in one file, saved while it runs.

The file is a tar archive: `fairlead-backup.json`, the database, the secrets, the model files. The database goes first:
every model file it names existed before it, and files that no version has stay for an hour. With a key it is encrypted
(`fairlead_cli.encrypted_file`).
"""

import argparse
import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO

from fairlead_cli.context import Call
from fairlead_cli.encrypted_file import DecryptingReader, EncryptingWriter, check_key, is_encrypted, read_key
from fairlead_cli.errors import CliError
from fairlead_cli.up import preparation
from fairlead_cli.up.components import environment
from fairlead_cli.up.home import Home, home_path, prepare

SCHEMA = "fairlead.backup/v1"
_MANIFEST = "fairlead-backup.json"
_DATABASE, _ARTIFACTS = "fairlead.sqlite3", "artifacts"
_FILES = ("secret-key", "secret-key-fallbacks", "token", "defaults")
KEY, KEY_FILE = "FAIRLEAD_BACKUP_KEY", "FAIRLEAD_BACKUP_KEY_FILE"
"""The variables that have the key of backups, or the path of its file, where no option names one."""
_ELSEWHERE = {
    "FAIRLEAD_DATABASE_URL": "the database is elsewhere; use its own tools, such as pg_dump",
    "FAIRLEAD_ARTIFACTS_FOLDER": "the model files are elsewhere; copy that folder and the home with your own tools",
}


def backup_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `backup` takes."""
    parser.add_argument("file", type=Path, metavar="FILE", help="archive to write; must not exist")
    _home_argument(parser, home_path(), "folder to back up (FAIRLEAD_HOME, else .fairlead here or above)")
    _key_argument(
        parser, f"encrypts the archive with the key in this file, of 32 bytes or more ({KEY_FILE}, or the key in {KEY})"
    )


def restore_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `restore` takes."""
    parser.add_argument("file", type=Path, metavar="FILE", help="archive written by `fairlead backup`")
    here = Path(os.environ.get("FAIRLEAD_HOME") or ".fairlead")  # a new one, also below another home
    _home_argument(parser, here, "folder to restore to; must be absent or empty (FAIRLEAD_HOME, else .fairlead)")
    _key_argument(parser, f"key file of an encrypted archive ({KEY_FILE}, or the key in {KEY})")


def backup(call: Call) -> None:
    """Writes the state of the embedded platform into one file; the platform may run meanwhile."""
    _require_embedded()
    home, file = Home(call.options.home.resolve()), call.options.file
    if not (home.path / _DATABASE).is_file():
        raise CliError(f"{home.path} holds no database; name the folder of `fairlead up` with --home")
    if file.exists():
        raise CliError(f"{file} exists; choose another name for the backup")
    key = _key(call.options.key_file)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        # It holds the secret key and a token: no one else may read it, from the first byte on.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            _write_encrypted(home, stream, key) if key else _write(home, stream)
            os.fsync(stream.fileno())
        partial.replace(file)
    except (OSError, sqlite3.Error) as error:
        raise CliError(f"the backup to {file} failed: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    size = file.stat().st_size
    kept = "it is encrypted" if key else "it holds secrets, keep it safe"
    sentence = f"backed up {home.path} to {file} ({size} bytes); {kept}"
    call.done(sentence, home=str(home.path), file=str(file), size_bytes=size)


def restore(call: Call) -> None:
    """Creates a home of the embedded platform from a backup, also from one of an earlier release."""
    _require_embedded()
    home, file = call.options.home.resolve(), call.options.file
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise CliError(f"{home} is not empty; restore to another folder with --home, or move that one away")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{home.name}.", dir=home.parent) as made:
            fresh = Path(made) / "home"
            fresh.mkdir(mode=0o700)
            was = _unpack(file, call.options.key_file, fresh)
            _settle(fresh, f"{was}/{_ARTIFACTS}", home)
            if home.exists():
                home.rmdir()
            fresh.rename(home)
    except tarfile.ReadError as error:
        raise CliError(f"{file} is no whole archive that `fairlead backup` wrote ({error})") from error
    except (OSError, tarfile.TarError) as error:
        raise CliError(f"{file} cannot be restored to {home}: {error}") from error
    call.done(f"restored {file} to {home}; `fairlead up --home {home}` starts it", home=str(home), file=str(file))


def _key(named: Path | None) -> bytes | None:
    """Return the key of the option's file, else of the environment; None without one.

    Raises:
        CliError: the environment has it twice, or it is missing, too short or too long.
    """
    if named is not None:
        return read_key(named)
    key, file = os.environ.get(KEY), os.environ.get(KEY_FILE)
    if key and file:
        raise CliError(f"{KEY} and {KEY_FILE} are both set; keep one of them")
    if file:
        return read_key(Path(file))
    return check_key(key.encode().strip(), KEY) if key else None


def _settle(fresh: Path, old_artifacts: str, home: Path) -> None:
    """Bring the database to this release, and let it find the model files where they will be."""
    variables = environment(prepare(fresh), url="http://127.0.0.1:8080", gateway_url="http://127.0.0.1:8090")
    preparation.migrate(variables)
    moves = [Path(old_artifacts).as_uri(), (home / _ARTIFACTS).as_uri(), "--present-in", str(fresh / _ARTIFACTS)]
    preparation.manage(["artifacts_moved", *moves], variables)


def _write_encrypted(home: Home, stream: IO[bytes], key: bytes) -> None:
    encrypted = EncryptingWriter(stream, key)
    _write(home, encrypted)
    encrypted.finish()


def _write(home: Home, stream: IO[bytes] | EncryptingWriter) -> None:
    with tarfile.open(fileobj=stream, mode="w|") as archive, tempfile.TemporaryDirectory(dir=home.path) as scratch:
        manifest = {"schema": SCHEMA, "version": version("fairlead"), "home": str(home.path), "at": int(time.time())}
        content = json.dumps(manifest).encode()
        entry = tarfile.TarInfo(_MANIFEST)
        entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
        archive.addfile(entry, io.BytesIO(content))
        copy = Path(scratch) / _DATABASE
        _copy_database(home.path / _DATABASE, copy)
        archive.add(copy, _DATABASE, recursive=False)
        for path in (*(home.path / name for name in _FILES), *_model_files(home)):
            if path.is_file():
                archive.add(path, path.relative_to(home.path).as_posix(), recursive=False)


def _copy_database(source: Path, target: Path) -> None:
    """Copy it as of one moment, while others write; what its write-ahead log holds comes along."""
    with closing(sqlite3.connect(source, timeout=60)) as present, closing(sqlite3.connect(target)) as copy:
        present.backup(copy)


def _model_files(home: Home) -> Iterator[Path]:
    """Yield whole model files; folders with a dot hold what is just being written."""
    for artifact in sorted((home.path / _ARTIFACTS).glob("[!.]*")):
        yield from sorted(path for path in artifact.rglob("*") if path.is_file())


def _unpack(file: Path, key_file: Path | None, fresh: Path) -> str:
    """Unpack what a backup may hold and nothing else; return the home it was taken of."""
    if not is_encrypted(file):
        with tarfile.open(file, mode="r:") as archive:
            return _unpack_archive(file, archive, fresh)
    key = _key(key_file)
    if key is None:
        raise CliError(f"{file} is encrypted; name the file of its key with --key-file or {KEY_FILE}")
    with file.open("rb") as stream:
        reader = DecryptingReader(stream, key, name=str(file))
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            home = _unpack_archive(file, archive, fresh)
        reader.drain()
    return home


def _unpack_archive(file: Path, archive: tarfile.TarFile, fresh: Path) -> str:
    home = ""
    for entry in archive:
        source = archive.extractfile(entry) if entry.isreg() else None
        if source is None or not _is_expected(entry.name):
            raise CliError(f"{file} holds {entry.name!r}, which no backup has; nothing was restored")
        if entry.name == _MANIFEST:
            home = _home_of(file, source.read())
            continue
        if not home:
            break
        _write_file(fresh / entry.name, source)
    if not home:
        raise CliError(f"{file} is no backup of Fairlead: it does not begin with {_MANIFEST}")
    return home


def _write_file(path: Path, source: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        shutil.copyfileobj(source, target, 2**20)


def _is_expected(name: str) -> bool:
    path = PurePosixPath(name)
    if name in (_MANIFEST, _DATABASE, *_FILES):
        return True
    return len(path.parts) > 2 and path.parts[0] == _ARTIFACTS and not path.is_absolute() and ".." not in path.parts


def _home_of(file: Path, content: bytes) -> str:
    try:
        manifest = json.loads(content)
    except ValueError as error:
        raise CliError(f"{file} is no backup of Fairlead: its {_MANIFEST} cannot be read") from error
    if manifest.get("schema") != SCHEMA:
        raise CliError(f"{file} is a backup of form {manifest.get('schema')!r}; this release reads {SCHEMA}")
    home = str(manifest.get("home"))
    if not Path(home).is_absolute():
        raise CliError(f"{file} does not say of which folder it is a backup")
    return home


def _require_embedded() -> None:
    for variable, advice in _ELSEWHERE.items():
        if os.environ.get(variable):
            raise CliError(f"{variable} is set: {advice}")


def _home_argument(parser: argparse.ArgumentParser, default: Path, help_: str) -> None:
    parser.add_argument("--home", type=Path, default=default, help=help_)


def _key_argument(parser: argparse.ArgumentParser, help_: str) -> None:
    parser.add_argument("--key-file", type=Path, metavar="FILE", help=help_)
