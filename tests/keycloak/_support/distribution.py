"""Keycloak's distribution: fetched once by Maven, checked, prepared for its in-memory database, and kept in the cache.

The cache is that of `tests/servers/clients.py`, outside the work tree.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.servers import network
from tests.servers.parts import MissingPartError, cache

VERSION = "26.4.5"
_SHA256 = "74fed80ab67607c86995824ad4b965f53cca0a706e2aeded45e173d3ccb0b24d"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_JAVA = 17
_FETCH_S, _BUILD_S = 600, 300


def distribution() -> Path:
    """Return the folder of Keycloak, ready to start; raises MissingPartError where it cannot be fetched or run."""
    _require_java()
    folder = cache() / f"keycloak-{VERSION}-{_SHA256[:16]}"
    done = folder / ".complete"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once fetch it once
            if not done.exists():
                _fill(folder)
                done.touch()
    return folder / f"keycloak-{VERSION}"


def java_options() -> dict[str, str]:
    """Return the environment that programs of Keycloak run in: no more memory than the tests need."""
    return {**os.environ, "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m"}


def _require(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise MissingPartError(f"{program} is not installed; install the Debian package {package}")


def _require_java() -> None:
    _require("java", "default-jre-headless")
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr)
    if found is None or int(found[1]) < _JAVA:
        has = "none" if found is None else found[1]
        raise MissingPartError(f"Keycloak {VERSION} needs Java {_JAVA} or later; `java -version` shows {has}")


def _fill(folder: Path) -> None:
    shutil.rmtree(folder / f"keycloak-{VERSION}", ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        _fetch(Path(scratch))
        archive = Path(scratch) / f"keycloak-quarkus-dist-{VERSION}.tar.gz"
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != _SHA256:
            raise MissingPartError(f"Keycloak {VERSION} has the SHA-256 {found}, not {_SHA256}")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    # What Keycloak else does at each start, for half a minute.
    command = [folder / f"keycloak-{VERSION}" / "bin" / "kc.sh", "build", "--db=dev-mem", "--health-enabled=false"]
    _run([str(part) for part in command], _BUILD_S, "Keycloak could not be prepared")


def _fetch(scratch: Path) -> None:
    _require("mvn", "maven")
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:tar.gz"
    # A repository of its own: the archive would stay in the person's.
    command = ["mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={scratch / 'repository'}", _COPY]
    command += [f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
    _run(network.outside(*command), _FETCH_S, "Keycloak could not be fetched by Maven")


def _run(command: list[str], within_s: float, failure: str) -> None:
    try:
        subprocess.run(
            command, env=java_options(), check=True, capture_output=True, text=True, timeout=within_s, cwd="/"
        )
    except subprocess.CalledProcessError as error:
        raise MissingPartError(f"{failure}: {(error.stderr + error.stdout).strip()[-300:]}") from error
    except subprocess.TimeoutExpired as error:
        raise MissingPartError(f"{failure} within {within_s:g} s") from error
