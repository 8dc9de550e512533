"""`fairlead models pull`: the files of a version, checked against its digest."""

import argparse
import hashlib
import sys
import tarfile
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from fairlead_cli.client import Json, path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.output import render


def pull_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the registered model")
    parser.add_argument("version", metavar="VERSION", help="number of the version, or @ALIAS")
    parser.add_argument("--to", type=Path, metavar="FOLDER", default=Path(), help="folder for the files (here)")


def pull(call: Call) -> None:
    """Downloads the files of a version into a folder; existing files are not replaced."""
    options = call.options
    version = _version(call, options.name, options.version)
    target: Path = options.to
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fairlead-pull-", dir=target) as scratch:
            files = Path(scratch) / "files"
            _fetch(call, version, Path(scratch) / "artifact", files)
            found = _digest(files)
            if found != version["digest"]:
                raise CliError(f"what came has the digest {found}, not {version['digest']}; pull it again")
            placed = _place(files, target)
    except OSError as error:
        raise CliError(f"the files could not be put into {target}: {error}") from error
    number = version["number"]
    call.done(
        f"{render.clean(options.name)} version {number} is in {render.clean(target)}: {render.clean(placed)}",
        model=options.name,
        version=number,
        digest=version["digest"],
        files=[str(target / name) for name in placed],
    )


def _version(call: Call, name: str, which: str) -> Json:
    if which.startswith("@"):
        model = call.client.get(path("models", name))
        numbers = {alias["name"]: alias["version"] for alias in model["aliases"]}
        if which[1:] not in numbers:
            there = ", ".join(sorted(numbers)) or "none"
            raise CliError(f"model {name} has no alias {which[1:]}; there are: {there}")
        which = str(numbers[which[1:]])
    elif not which.isdecimal():
        raise CliError(f"{which!r} is no version; give its number, or @ALIAS")
    return call.client.get(path("models", name, "versions", which))


def _fetch(call: Call, version: Json, archive: Path, files: Path) -> None:
    """Download to `archive` and lay the files out under `files`."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress,
        archive.open("xb") as file,
    ):
        task = progress.add_task("downloading", total=None)
        address = path("models", version["model"], "versions", version["number"], "artifact")
        name = call.client.download(address, file, lambda count, size: progress.update(task, total=size, advance=count))
    files.mkdir()
    if not name.endswith(".tar"):
        archive.rename(files / f"model{Path(name).suffix}")  # as the registry calls it
        return
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(files, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise CliError(f"the archive that came cannot be unpacked: {error}") from error


def _digest(folder: Path) -> str:
    """Return the digest as the registry makes it: sha256 over the sorted lines `path NUL sha256 LF`."""
    lines = []
    for file in filter(Path.is_file, folder.rglob("*")):
        with file.open("rb") as content:
            lines.append((file.relative_to(folder).as_posix(), hashlib.file_digest(content, "sha256").hexdigest()))
    text = "".join(f"{name}\0{digest}\n" for name, digest in sorted(lines))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _place(files: Path, target: Path) -> list[str]:
    """Move what is in `files` into `target`, all of it or nothing, and return the names."""
    names = sorted(path.name for path in files.iterdir())
    if there := [name for name in names if (target / name).exists()]:
        raise CliError(f"{target / there[0]} is there already; give another folder with --to")
    for name in names:
        (files / name).rename(target / name)
    return names
