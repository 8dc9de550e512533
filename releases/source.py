"""The commit that a release is made of, exported out of Git: files that are not committed cannot get into it."""

import re
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from releases.errors import ReleaseError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*")
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Source:
    """An exported commit.

    Attributes:
        commit: 40 hex digits.
        made_s: when it was committed, in seconds since 1970; the time of all that is built of it (SOURCE_DATE_EPOCH).
        version: of `pyproject.toml`.
        tree: the folder with the commit's files.
    """

    commit: str
    made_s: int
    version: str
    tree: Path


def clean_commit(root: Path) -> str:
    """Return the commit of a work tree; raises ReleaseError where files differ from it."""
    changed = _git(root, "status", "--porcelain", "--untracked-files=normal").splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:_NAMED])
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        differ, them = ("differs", "it") if len(changed) == 1 else ("differ", "them")
        raise ReleaseError(
            f"a release is made of a commit, and {names}{more} {differ} from it: commit or remove {them} first"
        )
    return _git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()


def known_commit(root: Path, commit: str) -> str:
    """Return the commit if this clone has it; raises ReleaseError where it has not."""
    if not _COMMIT.fullmatch(commit):
        raise ReleaseError(f"the release names the commit {commit[:60]!r}, which is not 40 hex digits")
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    except ReleaseError as error:
        raise ReleaseError(f"this clone lacks the release's commit {commit}: fetch it, then verify again") from error


@contextmanager
def exported(root: Path, commit: str) -> Iterator[Source]:
    """Give the files of a commit in a folder that goes afterwards."""
    made_s = int(_git(root, "show", "--no-patch", "--format=%ct", commit))
    with tempfile.TemporaryDirectory(prefix="fairlead-release-") as folder:
        tree = Path(folder) / "source"
        command = ["git", "-C", str(root), "archive", "--format=tar", commit]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as git:
            assert git.stdout is not None  # noqa: S101 - of PIPE
            with tarfile.open(fileobj=git.stdout, mode="r|") as files:
                files.extractall(tree, filter="data")
        if git.returncode != 0:
            raise ReleaseError(f"git cannot export the commit {commit}: exit code {git.returncode}")
        yield Source(commit, made_s, version_of((tree / "pyproject.toml").read_text()), tree)


def version_of(project: str) -> str:
    """Return the version that a `pyproject.toml` has; raises ReleaseError where it would not do as part of a name."""
    version = str(tomllib.loads(project)["project"]["version"])
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"the version {version!r} in pyproject.toml is not like 1.2.3: correct it there")
    return version


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip()[-300:] or f"exit code {done.returncode}"
        raise ReleaseError(f"git {arguments[0]} in {root} failed: {said}")
    return done.stdout
