"""Reproducible archives: the packages of the charts as Helm reads them, and the Kustomize overlays.

Entries are sorted and have one time, one mode and no owner, so that equal files make equal bytes.
"""

import gzip
import io
import tarfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from releases.errors import ReleaseError
from releases.source import Source

CHARTS = ("fairlead", "fairlead-member")
"""Folders in `charts/`."""
DIGESTS = "files/digests.yaml"
"""Where a chart has the digests of its release's images."""


def packed(files: Mapping[str, bytes], made_s: int) -> bytes:
    """Return a .tar.gz.

    Args:
        files: content by path in the archive.
        made_s: the time of each entry and of the archive, in seconds since 1970.
    """
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), made_s, 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    made = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=made, mtime=made_s) as compressed:
        compressed.write(tar.getvalue())
    return made.getvalue()


def chart(source: Source, name: str, digests: str) -> tuple[str, bytes]:
    """Return name and content of a chart's package; raises ReleaseError where it is of another version.

    Args:
        digests: the content of `files/digests.yaml`, in the chart that has that file.
    """
    folder = source.tree / "charts" / name
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    if about["appVersion"] != source.version:
        raise ReleaseError(
            f"charts/{name}/Chart.yaml has appVersion {about['appVersion']}, pyproject.toml version {source.version}: "
            "set one of them"
        )
    ignored = (folder / ".helmignore").read_text().split()
    files = {path: content for path, content in _files(folder).items() if not is_ignored(path, ignored)}
    if DIGESTS in files:
        files[DIGESTS] = digests.encode()
    inside = {f"{name}/{path}": content for path, content in files.items()}
    return f"{name}-{about['version']}.tgz", packed(inside, source.made_s)


def overlays(source: Source) -> tuple[str, bytes]:
    """Return name and content of the archive of `kustomize/`."""
    top = f"fairlead-kustomize-{source.version}"
    files = _files(source.tree / "kustomize")
    return f"{top}.tar.gz", packed({f"{top}/{path}": content for path, content in files.items()}, source.made_s)


def is_ignored(path: str, patterns: list[str]) -> bool:
    """Return whether a `.helmignore` leaves a file out: by a folder's name and a slash, or by a pattern of its name."""
    *folders, name = path.split("/")
    return any(
        pattern.removesuffix("/") in folders if pattern.endswith("/") else fnmatchcase(name, pattern)
        for pattern in patterns
    )


def _files(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
