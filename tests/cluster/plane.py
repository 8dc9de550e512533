"""A Kubernetes control plane of its own on free ports of the loopback address: etcd, API server, controller manager and
scheduler, all real, with RBAC. It has no nodes; `kubelet.py` brings one.
"""

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec

from integrations.sandbox.command import command as launcher
from tests.cluster._support.certificates import Authority, Pair, write_key
from tests.cluster.binaries import Binaries, binaries
from tests.servers.parts import free_port

_START_S = 120.0
_END_S = 20.0


@dataclass
class ControlPlane:
    """A running control plane; all its files are below `folder`."""

    folder: Path
    programs: Binaries
    is_ipv6: bool = False
    apiserver_port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    _authority: Authority = field(init=False)
    _server: Pair = field(init=False)
    _admin: Pair = field(init=False)
    _to_kubelets: Pair = field(init=False)
    _to_extensions: Pair = field(init=False)
    _processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._authority = Authority(self.folder)
        self._server = self._authority.issue(
            "kube-apiserver", addresses=[self.loopback, "fd00:96::1" if self.is_ipv6 else "10.96.0.1"]
        )
        self._admin = self._authority.issue("admin", groups=["system:masters"])
        self._to_kubelets = self._authority.issue("kube-apiserver-kubelet-client")
        self._to_extensions = self._authority.issue("front-proxy-client")
        write_key(self.folder / "service-accounts.key", ec.generate_private_key(ec.SECP256R1()))

    @property
    def loopback(self) -> str:
        """Return the address of what runs beside the cluster."""
        return "::1" if self.is_ipv6 else "127.0.0.1"

    @property
    def url(self) -> str:
        """Return the API server's address."""
        return f"https://{in_url(self.loopback)}:{self.apiserver_port}"

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.kubeconfig_of("admin", self._admin)

    def user(self, name: str, *groups: str) -> Path:
        """Return a kubeconfig for a user of that name, who may do what RBAC gives them."""
        return self.kubeconfig_of(name, self._authority.issue(name, groups=groups))

    @property
    def authority(self) -> Path:
        """Return the certificate by which all others of the cluster are known."""
        return self._authority.certificate

    @property
    def pids(self) -> dict[str, int]:
        """Return the process of each part that runs."""
        return {name: process.pid for name, process in self._processes.items()}

    def issue(self, name: str, *, addresses: Sequence[str] = ()) -> Pair:
        """Return a certificate for a server of the cluster, or for a client of its kubelets."""
        return self._authority.issue(name, addresses=addresses)

    def kubeconfig_of(self, name: str, pair: Pair) -> Path:
        """Return a kubeconfig for who has a certificate."""
        place = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        server = {"server": self.url, "certificate-authority": str(self._authority.certificate)}
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        }
        place.write_text(json.dumps(content))
        return place

    def start(self) -> None:
        """Start all parts and wait until the API answers and controllers work."""
        self.start_etcd()
        self.start_apiserver()
        self.start_controllers()

    def start_etcd(self) -> None:
        """Start etcd, whose data stays over a restart."""
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, free_port()))
        self._start(
            "etcd",
            self.programs.etcd,
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            "--log-level=warn",
        )

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        accounts = self.folder / "service-accounts.key"
        outside, services = ("2001:db8::1", "fd00:96::/112") if self.is_ipv6 else ("192.0.2.1", "10.96.0.0/16")
        self._start(
            "kube-apiserver",
            self.programs.apiserver,
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--bind-address={self.loopback}",
            f"--secure-port={self.apiserver_port}",
            "--endpoint-reconciler-type=none",  # it would write its own address, and refuses a loopback one
            f"--advertise-address={outside}",  # else it looks for a default route, which a test's network has not
            f"--service-cluster-ip-range={services}",
            "--authorization-mode=RBAC",
            f"--client-ca-file={self._authority.certificate}",
            f"--tls-cert-file={self._server.certificate}",
            f"--tls-private-key-file={self._server.key}",
            f"--kubelet-certificate-authority={self._authority.certificate}",
            f"--kubelet-client-certificate={self._to_kubelets.certificate}",
            f"--kubelet-client-key={self._to_kubelets.key}",
            # Aggregated API servers believe who asks where the request comes with this certificate.
            f"--proxy-client-cert-file={self._to_extensions.certificate}",
            f"--proxy-client-key-file={self._to_extensions.key}",
            f"--requestheader-client-ca-file={self._authority.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
        )
        self._until("the API server is ready", "/readyz")

    def start_controllers(self) -> None:
        """Start the controller manager and the scheduler, and wait until controllers work."""
        accounts = f"--service-account-private-key-file={self.folder / 'service-accounts.key'}"
        self._start_client(
            "kube-controller-manager",
            self.programs.controller_manager,
            "--controllers=*,-node-lifecycle-controller",  # test nodes have no kubelet that would renew a lease
            "--use-service-account-credentials=true",
            accounts,
            f"--root-ca-file={self._authority.certificate}",
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--horizontal-pod-autoscaler-downscale-stabilization=2s",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        )
        self._start_client("kube-scheduler", self.programs.scheduler)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._until("the controller manager made the default service account", account)

    def stop(self, name: str) -> None:
        """End one part, as a crash would."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all parts, the last one first."""
        for process in reversed(self._processes.values()):
            process.terminate()
            try:
                process.wait(timeout=_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def log(self, name: str) -> str:
        """Return the end of what a part said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def _start_client(self, name: str, program: Sequence[str], *flags: str) -> None:
        kubeconfig = self.user(f"system:{name}")
        self._start(name, program, f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", *flags)

    def _start(self, name: str, program: Sequence[str], *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                ends_with_us(*program, *flags),
                env={**os.environ, "GOGC": "400"},  # memory for processor time: garbage is collected a quarter as often
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _until(self, what: str, path: str) -> None:
        deadline = time.monotonic() + _START_S
        while not self._answers(path):
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with exit code {process.returncode}: {self.log(name)}")
            if time.monotonic() > deadline:
                logs = "\n".join(self.log(name) for name in self._processes)
                raise RuntimeError(f"not within {_START_S:g} s: {what}\n{logs}")
            time.sleep(0.05)

    def client(self) -> httpx.Client:
        """Return a client of the API server with the administrator's rights."""
        context = ssl.create_default_context(cafile=str(self._authority.certificate))
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        return httpx.Client(base_url=self.url, verify=context, timeout=10, trust_env=False)

    def kubelet_context(self) -> ssl.SSLContext:
        """Return what a kubelet serves with on the loopback address, to callers whom the authority knows alone."""
        pair = self._authority.issue("kubelet", addresses=[self.loopback])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self._authority.certificate))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(pair.certificate, pair.key)
        return context

    def _answers(self, path: str) -> bool:
        try:
            with self.client() as client:
                return client.get(path).status_code == 200
        except httpx.HTTPError:
            return False


def in_url(ip: str) -> str:
    """Return an address as the host of a URL."""
    return f"[{ip}]" if ":" in ip else ip


def ends_with_us(*command: str) -> list[str]:
    """Return the command line of a process that ends when this one does, however that comes."""
    return launcher(command)


@contextmanager
def control_plane(*, is_ipv6: bool = False) -> Iterator[ControlPlane]:
    """Give a running control plane; afterwards nothing of it is left. Raises MissingPartError.

    Args:
        is_ipv6: Services, nodes and pods have addresses of IPv6 alone.
    """
    programs = binaries()
    folder = Path(tempfile.mkdtemp(prefix="fairlead-kubernetes-"))
    plane = ControlPlane(folder, programs, is_ipv6)
    try:
        plane.start()
        yield plane
    finally:
        plane.close()
        shutil.rmtree(folder, ignore_errors=True)
