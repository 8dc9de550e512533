"""A release that is made once for a test process, of the work tree as it is: fixtures."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from releases import Order, make_release
from releases.signatures import private_key

ROOT = Path(__file__).parents[3]
_PARTS = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    ".gitignore",
    "serving_runtime",
    "charts",
    "kustomize",
)
_PARTS += ("platform/fairlead_cli", "requirements/images")
_AT = "2026-01-02T03:04:05+00:00"
_SOMEBODY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@a.example", "GIT_AUTHOR_DATE": _AT}
_SOMEBODY |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@a.example", "GIT_COMMITTER_DATE": _AT}
GIT = {**os.environ, **_SOMEBODY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
REGISTRY = "registry.example.com/fairlead"
DIGESTS = {
    f"{REGISTRY}/control-plane:0.1.0": f"sha256:{1:064x}",
    f"{REGISTRY}/serving-runtime:0.1.0": f"sha256:{2:064x}",
}


@dataclass(frozen=True, slots=True)
class Release:
    """A release, who made it, and of what.

    Attributes:
        key: PEM of the private key.
        public_key: PEM of the public key.
        repository: the work tree that it was made of.
    """

    folder: Path
    key: Path
    public_key: Path
    repository: Path

    def copy(self, place: Path) -> Path:
        """Return a copy of the files, which a test may change."""
        shutil.copytree(self.folder, place)
        return place


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: this work tree's files that a release is made of, committed or not."""
    return _repository(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A signed release of the repository, with the digests of images that a registry has."""
    return _release(tmp_path_factory.getbasetemp())


# Cached, since each module that imports a fixture has one of its own.
@cache
def _repository(base: Path) -> Path:
    made = base / "repository"
    made.mkdir()
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_PARTS)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, made / name)
    git(made, "init", "--quiet", "--initial-branch", "main")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "All")
    return made


@cache
def _release(base: Path) -> Release:
    folder = base / "release"
    folder.mkdir()
    key, public_key = keys(folder)
    digests = "".join(f"{reference}: {digest}\n" for reference, digest in DIGESTS.items())
    order = Order(REGISTRY, ("control-plane", "runtime-cpu"), digests)
    assert make_release(_repository(base), folder / "files", order, private_key(key)) == []
    return Release(folder / "files", key, public_key, _repository(base))


def keys(folder: Path) -> tuple[Path, Path]:
    """Write a new pair of keys, as `openssl genpkey -algorithm ed25519` does."""
    made = Ed25519PrivateKey.generate()
    key, public_key = folder / "release.key", folder / "release.pub"
    key.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public_key.write_bytes(made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return key, public_key


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True, capture_output=True, text=True).stdout
