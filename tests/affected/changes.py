"""What git knows: the files that changed, and how they were before."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """A file that differs from its version in the base; text is None where the file is not there or is not text."""

    path: str
    old: str | None
    new: str | None


class GitError(Exception):
    """Git refused; the sentence is for the terminal."""


class Repository:
    """A work tree of git."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def base(self, named: str | None) -> str:
        """Return the commit to compare with: `named`, or where this branch left main, on main the one before."""
        if named:
            return self._git(
                "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}", missing=f"no commit {named!r}"
            ).strip()
        head, branch = (self._git("rev-parse", *asked).strip() for asked in (["HEAD"], ["--abbrev-ref", "HEAD"]))
        for main in ("main", "origin/main"):
            try:
                left = self._git("merge-base", "HEAD", main).strip()
            except GitError:
                continue
            if left != head or branch not in ("main", "HEAD"):
                return left
        return self._git("rev-parse", "--verify", "--quiet", "HEAD~1", missing="no commit before HEAD").strip()

    def paths(self) -> list[str]:
        """Return the files of the work tree that git tracks or does not ignore."""
        listed = self._git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        return sorted({path for path in listed if path and (self.root / path).is_file()})

    def changes(self, base: str) -> list[Change]:
        """Return what differs between a commit and the work tree, untracked files included."""
        listed = self._git("diff", "--name-only", "--no-renames", "-z", base, "--").split("\0")
        listed += self._git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
        return [Change(path, self._old(base, path), self.read(path)) for path in sorted(set(listed)) if path]

    def read(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text()
        except (FileNotFoundError, UnicodeDecodeError, IsADirectoryError):
            return None

    def _old(self, base: str, path: str) -> str | None:
        try:
            return self._git("show", f"{base}:{path}")
        except (GitError, UnicodeDecodeError):
            return None

    def _git(self, *arguments: str, missing: str | None = None) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False)
        if done.returncode:
            raise GitError(missing or done.stderr.decode(errors="replace").strip() or f"git {arguments[0]} failed")
        return done.stdout.decode()
