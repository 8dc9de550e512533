"""The rate limit service of Envoy's project, with a Redis of its own, as Envoy Gateway runs it on a cluster.

Envoy Gateway's infrastructure provider `Host` starts none: this does what its Deployment says, and has the Service by
which Envoy Gateway finds it.
"""

import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from integrations.clusters.kubernetes.api.resource_types import ENDPOINT_SLICE, SERVICE
from tests.cluster._support.node.kubelet import address
from tests.cluster.binaries import ratelimit
from tests.cluster.plane import ControlPlane, ends_with_us
from tests.servers.parts import free_port
from tests.servers.redis import Redis

_NAME, _NAMESPACE = "envoy-ratelimit", "envoy-gateway-system"
_ADDRESS = "10.255.255.81"
"""On the loopback device, as those of pods: a Service takes none of 127/8."""
_CONFIG = "localhost:18001"
_WITHIN_S = 30.0


class RateLimitService:
    """Counts requests as Envoy Gateway says; raises MissingPartError where it cannot run.

    Args:
        certificates: of Envoy Gateway and of the service, each in a folder of its name.
    """

    def __init__(self, plane: ControlPlane, folder: Path, certificates: Path) -> None:
        self._program, self._folder, self._certificates = ratelimit(), folder, certificates
        self._plane, self.redis = plane, Redis()
        self._port, self._page = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._reached = ExitStack()

    def start(self) -> None:
        """Start both; returns once it answers."""
        self.redis.start()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._reached.enter_context(address(_ADDRESS))
        self._offer()
        with (self._folder / "log").open("ab") as log:
            command = ends_with_us(str(self._program))
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + _WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"the rate limit service does not answer: {self.log()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End both at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None
        self.redis.stop()
        self._reached.close()

    def log(self) -> str:
        """Return the end of what it said."""
        return (self._folder / "log").read_text(errors="replace")[-2000:]

    def _offer(self) -> None:
        """Make its Service and the endpoint of that, or give those that are there this port."""
        labels = {
            "app.kubernetes.io/name": _NAME,
            "app.kubernetes.io/component": "ratelimit",
            "app.kubernetes.io/managed-by": "envoy-gateway",
        }
        port = {"name": "http", "port": self._port, "protocol": "TCP"}
        metadata = {"name": _NAME, "namespace": _NAMESPACE, "labels": labels}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [port]}}
        endpoints = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {**labels, "kubernetes.io/service-name": _NAME}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [_ADDRESS], "conditions": {"ready": True}}],
            "ports": [port],
        }
        with self._plane.client() as client:
            for kind, body in ((SERVICE, service), (ENDPOINT_SLICE, endpoints)):
                headers = {"content-type": "application/apply-patch+yaml"}
                path = f"{kind.path(_NAMESPACE, _NAME)}?fieldManager=test&force=true"
                client.patch(path, json=body, headers=headers).raise_for_status()

    @property
    def _environment(self) -> dict[str, str]:
        own, of_gateway = self._certificates / "envoy-rate-limit", self._certificates / "envoy-gateway"
        return {
            "PATH": os.environ["PATH"],
            "HOST": _ADDRESS,
            "PORT": str(self._page),
            "DEBUG_HOST": _ADDRESS,
            "DEBUG_PORT": str(free_port()),
            "GRPC_HOST": _ADDRESS,
            "GRPC_PORT": str(self._port),
            "GRPC_SERVER_USE_TLS": "true",
            "GRPC_SERVER_TLS_CERT": str(own / "tls.crt"),
            "GRPC_SERVER_TLS_KEY": str(own / "tls.key"),
            "GRPC_CLIENT_TLS_CACERT": str(own / "ca.crt"),
            "CONFIG_TYPE": "GRPC_XDS_SOTW",
            "CONFIG_GRPC_XDS_SERVER_URL": _CONFIG,
            "CONFIG_GRPC_XDS_NODE_ID": "envoy-ratelimit",
            "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
            "CONFIG_GRPC_XDS_CLIENT_TLS_CERT": str(own / "tls.crt"),
            "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": str(own / "tls.key"),
            "CONFIG_GRPC_XDS_SERVER_TLS_CACERT": str(of_gateway / "ca.crt"),
            "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "envoy-gateway",
            "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
            "REDIS_SOCKET_TYPE": "tcp",
            "REDIS_URL": f"127.0.0.1:{self.redis.port}",
            "RUNTIME_ROOT": str(self._folder),
            "RUNTIME_SUBDIRECTORY": "ratelimit",
            "RUNTIME_WATCH_ROOT": "false",
            "USE_STATSD": "false",
            "LOG_LEVEL": "info",
        }

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://{_ADDRESS}:{self._page}/healthcheck", timeout=5, trust_env=False).is_success
        except httpx.HTTPError:
            return False
