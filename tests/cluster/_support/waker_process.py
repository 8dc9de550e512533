"""The waker as a process on a test cluster: its Service, the grant for policies of services, and its role alone."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import httpx
import yaml

from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.options import WakerReference
from tests.cluster._support.guarded import WITHIN_S
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until

ROOT = Path(__file__).parents[3]
NAME, NAMESPACE, PORT, METRICS_PORT = "waker", "wakers", 9002, 9003
"""Names of its Service and user, and its namespace, which is not that of services."""
REFERENCE = WakerReference(NAME, NAMESPACE, PORT)
RBAC = "rbac.authorization.k8s.io"
_ESTABLISHED = "01"


def install(plane: ControlPlane, ip: str) -> None:
    """Make the waker's Service with one endpoint, the grant for policies of `default`, and its role there."""
    ports = [{"name": "grpc", "port": PORT, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"}]
    slices = {"addressType": "IPv4", "endpoints": endpoints(ip), "ports": ports}
    asking = {"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": "default"}
    grant = {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant"}
    grant |= {"spec": {"from": [asking], "to": [{"group": "", "kind": "Service", "name": NAME}]}}
    role = yaml.safe_load(Path(rbac.__file__).with_name("waker_role.yaml").read_text())
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]}
    bound = {"roleRef": reference, "subjects": [{"kind": "User", "apiGroup": RBAC, "name": NAME}]}
    inside = f"namespaces/{NAMESPACE}"
    with plane.client() as api:
        for path, body in (
            ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
            (f"/api/v1/{inside}/services", {"spec": {"ports": ports}}),
            (f"/apis/discovery.k8s.io/v1/{inside}/endpointslices", slices),
            (f"/apis/gateway.networking.k8s.io/v1beta1/{inside}/referencegrants", grant),
            (f"/apis/{RBAC}/v1/clusterroles", role),
            (f"/apis/{RBAC}/v1/namespaces/default/rolebindings", bound),
        ):
            named = {"metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}}}
            api.post(path, json={**named, **body}).raise_for_status()


def remove(plane: ControlPlane) -> None:
    """Remove what `install` made, and wait until it is gone."""
    with plane.client() as api:
        for path in (
            f"/apis/{RBAC}/v1/namespaces/default/rolebindings/{NAME}",
            f"/apis/{RBAC}/v1/clusterroles/fairlead-waker",
            f"/api/v1/namespaces/{NAMESPACE}",
        ):
            api.delete(path).raise_for_status()
        gone = f"/api/v1/namespaces/{NAMESPACE}"
        until(lambda: api.get(gone).status_code == httpx.codes.NOT_FOUND, f"{NAMESPACE} is gone", WITHIN_S)


def endpoints(*ips: str) -> list[dict[str, Any]]:
    return [{"addresses": [ip]} for ip in ips]


def lead_to(plane: ControlPlane, *ips: str) -> None:
    """Have the waker's Service lead to the pods at these addresses."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{NAME}"
    headers = {"content-type": "application/merge-patch+json"}
    with plane.client() as api:
        api.patch(path, json={"endpoints": endpoints(*ips)}, headers=headers).raise_for_status()


class WakerProcess:
    """The waker as a process, with the rights of its role."""

    def __init__(self, plane: ControlPlane, folder: Path, ip: str) -> None:
        self._ip = ip
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
            "FAIRLEAD_HOME": str(folder / "home"),
            "FAIRLEAD_SECRET_KEY": "x" * 40,
            "FAIRLEAD_WAKER_ADDRESS": f"{ip}:{PORT}",
            "FAIRLEAD_WAKER_METRICS_ADDRESS": f"{ip}:{METRICS_PORT}",
            "FAIRLEAD_WAKER_NAMESPACES": "default",
        }
        self._variables = variables
        self._command = [sys.executable, str(ROOT / "manage.py"), "wake_services"]
        self._command += ["--kubeconfig", str(plane.user(NAME))]

    def start(self) -> None:
        """Start it, and wait until it takes calls."""
        self._process = subprocess.Popen(self._command, env=self._variables)
        with grpc.insecure_channel(f"{self._ip}:{PORT}") as channel:
            grpc.channel_ready_future(channel).result(WITHIN_S)

    def is_called(self) -> bool:
        """Return whether Envoy holds a connection to it."""
        place = f"{int.from_bytes(socket.inet_aton(self._ip), 'little'):08X}:{PORT:04X}"
        lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
        return any(line[1].endswith(place) and line[3] == _ESTABLISHED for line in lines)

    def counted(self, metric: str) -> float:
        """Return a sample of its metrics page."""
        page = httpx.get(f"http://{self._ip}:{METRICS_PORT}/metrics", trust_env=False).text
        return next(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(metric))

    def kill(self) -> None:
        """End it as a node that fails would."""
        self._process.kill()
        self._process.wait(30)

    def end(self) -> None:
        """End it as the kubelet does."""
        self._process.terminate()
        self._process.wait(30)
