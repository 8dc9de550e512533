"""A Docker engine for tests: the one that `docker` reaches, else one of our own, and a base for images to build on.

Our own engine wants root and Debian's docker.io; it changes neither routes nor firewall, so that its containers use the
machine's network. Where the public base cannot be pulled, Debian's debootstrap makes one, which trusts whom this
machine trusts. Engine and base are kept in the cache, so that a second run builds only what changed.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.parts import MissingPartError, cache

PUBLIC_BASE = "debian:bookworm-slim"
_OWN_BASE = "fairlead-test-base"
_START_S, _BASE_S = 60, 900
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    host: str | None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which `docker` talks to it."""
        return {**os.environ, "DOCKER_HOST": self.host} if self.host else dict(os.environ)

    def docker(self, *arguments: str, timeout_s: float = 120, stdin: bytes = b"") -> str:
        """Return what `docker ARGUMENTS` printed; raises AssertionError with what it said where it failed."""
        done = self.attempt(*arguments, timeout_s=timeout_s, stdin=stdin)
        assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr.decode()[-2000:]}"
        return done.stdout.decode().strip()

    def attempt(
        self, *arguments: str, timeout_s: float = 120, stdin: bytes = b""
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run `docker ARGUMENTS`, whether it fails or not."""
        return subprocess.run(
            ["docker", *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )


@contextmanager
def engine() -> Iterator[Engine]:
    """Give an engine; raises MissingPartError where there is none and none can be started."""
    if shutil.which("docker") is None:
        raise MissingPartError("docker is not installed; install the Debian packages docker.io and debootstrap")
    machines_own = Engine(None)
    if machines_own.attempt("version").returncode == 0:
        yield machines_own
        return
    program = shutil.which("dockerd")
    if program is None or os.geteuid() != 0:
        raise MissingPartError("no Docker engine answers; start one, or run as root where docker.io is installed")
    with tempfile.TemporaryDirectory(prefix="fairlead-docker-") as scratch:
        host = f"unix://{scratch}/docker.sock"
        command = [program, "--data-root", str(cache() / "docker"), "--exec-root", f"{scratch}/exec"]
        command += ["--pidfile", f"{scratch}/pid", "--host", host, "--bridge=none", "--iptables=false"]
        command += ["--ip6tables=false", "--ip-forward=false"]
        with (Path(scratch) / "log").open("wb+") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                _wait(Engine(host), process, Path(log.name))
                yield Engine(host)
            finally:
                process.terminate()
                process.wait(60)
                unmount_below(Path(scratch))


def base(running: Engine) -> str:
    """Return the name of an image to build on; raises MissingPartError where none can be had."""
    for name in (PUBLIC_BASE, _OWN_BASE):
        if running.attempt("image", "inspect", name).returncode == 0:
            return name
    if running.attempt("pull", "--quiet", PUBLIC_BASE, timeout_s=300).returncode == 0:
        return PUBLIC_BASE
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise MissingPartError(
            f"{PUBLIC_BASE} cannot be pulled; as root with the Debian package debootstrap one is made"
        )
    with tempfile.TemporaryDirectory(prefix="fairlead-base-") as folder:
        include = "--include=ca-certificates,media-types,python3"
        command = ["debootstrap", "--variant=minbase", include, "bookworm", folder]
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BASE_S)
        if made.returncode:
            raise MissingPartError(f"debootstrap failed: {made.stdout[-300:]}")
        shutil.copy(_AUTHORITIES, folder + _AUTHORITIES)
        for archive in Path(folder, "var/cache/apt/archives").glob("*.deb"):
            archive.unlink()
        trust = f"ENV PIP_CERT={_AUTHORITIES} NODE_EXTRA_CA_CERTS={_AUTHORITIES}"
        tar = subprocess.run(["tar", "-C", folder, "-c", "."], capture_output=True, check=True)
        running.docker("import", "--change", trust, "-", _OWN_BASE, stdin=tar.stdout)
    return _OWN_BASE


def unmount_below(folder: Path) -> None:
    """Take away the mounts that an engine left, such as that of the machine's network namespace."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in places:
        if Path(place).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", place], check=True)


def _wait(started: Engine, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while started.attempt("version").returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise MissingPartError(f"the Docker engine does not start here: {' '.join(last)[-300:]}")
        time.sleep(0.2)
