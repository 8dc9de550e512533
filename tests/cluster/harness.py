"""A whole Kubernetes cluster for tests: the real control plane, a node that runs pods as processes, and a gateway."""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from integrations.artifacts.store import ArtifactStore, StoredArtifact
from integrations.clusters.base import ClusterDriver, Desired, Drift, Exchange, Observed, ObservedReplica, PodTemplates
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import Options
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster._support.node.kubelet import Kubelet
from tests.cluster._support.node.pod import Image
from tests.cluster.plane import ControlPlane
from tests.servers.parts import MissingPartError, skip_or_fail

IMAGE, CLAIM, CACHE = "fairlead/serving-runtime:test", "models", "model-cache"
UNRULY_IMAGE = "fairlead/unruly:test"
"""Its runtime misbehaves as the revision's environment says: see `tests/integrations/_support/v2_server.py`."""
REAL_RUNTIME = [sys.executable, "-m", "serving_runtime"]
UNRULY_RUNTIME = [sys.executable, str(Path(__file__).parents[1] / "integrations" / "_support" / "v2_server.py")]


@dataclass(frozen=True, slots=True)
class Harness:
    """What a test does things with; services live in the namespace `default`."""

    plane: ControlPlane
    kubelet: Kubelet
    gateway: Gateway | EnvoyGateway
    options: Options
    api: Api
    driver: KubernetesDriver
    artifacts: ArtifactStore

    def store(self, content: bytes) -> StoredArtifact:
        """Store a model file where pods can read it."""
        with self.artifacts.begin("model.onnx") as writer:
            writer.write(content)
            return writer.commit()


@contextmanager
def harness(
    plane: ControlPlane,
    folder: Path,
    *,
    runtime: Sequence[str] = REAL_RUNTIME,
    images: Mapping[str, Image] = MappingProxyType({}),
    claims: Mapping[str, Path] = MappingProxyType({}),
    finds_names: bool = False,
    gateway_of: type[Gateway | EnvoyGateway] = Gateway,
    cpu_cores: float = 64,
) -> Iterator[Harness]:
    """Give a node and a gateway on a control plane; afterwards no process and no address of theirs is left.

    Where this process may not add addresses to the loopback device, the present test ends for want of it.

    Args:
        images: what other images do than the runtime's.
        claims: folders of more claims, which the test makes.
        finds_names: pods find Services by their names.
        cpu_cores: how much the node has for pods.
        runtime: the command that the runtime's image has here; models are always prepared by the real one.
        gateway_of: what lets requests through.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        skip_or_fail(MissingPartError("pods get addresses by `ip address`, which takes root and the package iproute2"))

    artifacts = ArtifactStore(folder / "artifacts", max_bytes=1 << 30)
    artifacts.folder.mkdir()
    (folder / "pods").mkdir()
    try:
        gateway = gateway_of(plane, folder / "envoy")
    except MissingPartError as missing:
        skip_or_fail(missing)
    options = Options(
        gateway=gateway.reference,
        runtime_image=IMAGE,
        artifacts_claim=CLAIM,
        artifacts_root=str(artifacts.folder),
        pre_stop_s=1,
        drain_s=5,
        name="test",
        control_plane_url="http://127.0.0.1:1",  # nothing is there; a test may have another
        payloads_folder=str(folder / "payloads" / "test"),
    )
    own_claims = {CLAIM: artifacts.folder, CACHE: folder / "cache"}
    for name in own_claims:
        make_claim(plane, name)
    own = {IMAGE: image_of(runtime), UNRULY_IMAGE: image_of(UNRULY_RUNTIME)}
    kubelet = Kubelet(
        plane,
        folder / "pods",
        images={**own, **images},
        claims={**own_claims, **claims},
        cpu_cores=cpu_cores,
        finds_names=finds_names,
    )
    api = Api(plane.kubeconfig)
    driver = KubernetesDriver(api, options)
    with ExitStack() as running:
        running.callback(api.close)
        running.enter_context(_other_nodes_closed(plane))
        running.callback(kubelet.close)
        kubelet.start()
        running.callback(gateway.close)
        gateway.start()
        running.callback(_forget_services, plane)
        yield Harness(plane, kubelet, gateway, options, api, driver, artifacts)


def loopback_port(ip: str) -> int:
    """Return the port at 127.0.0.1 of a pod's container behind a proxy: pods share the loopback address here."""
    third, fourth = ip.split(".")[2:]
    return 10_000 + int(third) % 64 * 256 + int(fourth)


def image_of(runtime: Sequence[str]) -> Image:
    """Return the serving runtime's image, whose `python -m serving_runtime` is this command where it serves."""

    def command(argv: Sequence[str], ip: str) -> Sequence[str]:
        if "-c" in argv:
            return [sys.executable, *(word for word in argv[1:] if word != "-I")]  # which sees no runtime of a variable
        own = list(argv[argv.index("serving_runtime") + 1 :])
        if own[0] in ("prepare", "inspect", "profile", "tune", "build", "try", "upload", "pool-fetcher"):
            return [*REAL_RUNTIME, *own]
        if own[0] == "proxy":
            target = f"--target_port={loopback_port(ip)}"
            own = [target if each.startswith("--target_port=") else each for each in own]
            return [*REAL_RUNTIME, *own, f"--address={ip}"]
        if own[0] == "replay":
            return [*REAL_RUNTIME, *own, f"--http-address={ip}"]
        ports = {"http": 8000, "grpc": 8001, "metrics": 8002}
        flags = [f"--{name}-port={port}" for name, port in ports.items()]
        if list(runtime) == REAL_RUNTIME:
            flags += [f"--{name}-address={ip}" for name in ports]
        else:
            flags.append(f"--http-address={ip}")
        return [*runtime, *own, *flags]

    return command


@contextmanager
def _other_nodes_closed(plane: ControlPlane) -> Iterator[None]:
    """Let no pod be put on the nodes that are there already, which know other models and another runtime."""
    headers = {"content-type": "application/merge-patch+json"}
    with plane.client() as client:
        items = client.get("/api/v1/nodes").json()["items"]
        paths = [f"/api/v1/nodes/{each['metadata']['name']}" for each in items if not each["spec"].get("unschedulable")]
        for path in paths:
            client.patch(path, json={"spec": {"unschedulable": True}}, headers=headers).raise_for_status()
    yield
    with plane.client() as client:
        for path in paths:
            client.patch(path, json={"spec": {"unschedulable": None}}, headers=headers)


def _forget_services(plane: ControlPlane) -> None:
    """Delete what a test left, so that the next one finds neither its pods nor its routes."""
    with plane.client() as client:
        for kind in (resource_types.CONFIG_MAP, *resource_types.PRUNED):
            services = {"labelSelector": "app.kubernetes.io/managed-by=fairlead"}
            for each in client.get(kind.path("default"), params=services).json()["items"]:
                client.delete(kind.path("default", each["metadata"]["name"]))


def make_claim(plane: ControlPlane, name: str) -> None:
    """Make a claim, bound to a volume that the stand-in for the kubelet knows by the claim's name alone."""
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    place = {"hostPath": {"path": "/nowhere"}}
    volume = {"metadata": {"name": name}, "spec": {**common, **place, "capacity": size}}
    claim = {"metadata": {"name": name}, "spec": {**common, "resources": {"requests": size}, "volumeName": name}}
    with plane.client() as client:
        for path, body in (
            ("/api/v1/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", **volume}),
            ("/api/v1/namespaces/default/persistentvolumeclaims", {"kind": "PersistentVolumeClaim", **claim}),
        ):
            answer = client.post(path, json=body)
            if answer.status_code != 409:  # one is there from before
                answer.raise_for_status()


@dataclass
class Repeating:
    """A driver whose last wish for each service can be applied again, as the reconciler does on every tick."""

    inner: ClusterDriver
    _desired_states: dict[tuple[str, str], Desired] = field(default_factory=dict)
    _deleted: dict[tuple[str, str], int] = field(default_factory=dict)

    def apply(self, desired: Desired) -> Sequence[Drift]:
        """Apply, and remember it unless it is older than what is remembered."""
        found = self.inner.apply(desired)
        key = (desired.namespace, desired.service)
        known = self._desired_states[key].generation if key in self._desired_states else self._deleted.get(key, 0)
        if known <= desired.generation:
            self._desired_states[key] = desired
        return found

    def pod_templates(self, desired: Desired) -> Mapping[str, PodTemplates]:
        """Return the pod templates to pin."""
        return self.inner.pod_templates(desired)

    def template_changes(self, desired: Desired) -> Mapping[str, str]:
        """Compare the pinned pod templates."""
        return self.inner.template_changes(desired)

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return what a replica said last."""
        return self.inner.log(namespace, service, replica)

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return what taps recorded."""
        return self.inner.exchanges(namespace, service, cursor)

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Delete, and want nothing any more."""
        self._desired_states.pop((namespace, service), None)
        self._deleted[namespace, service] = generation
        self.inner.delete(namespace, service, generation)

    def observe(self, namespace: str, service: str) -> Observed:
        """Observe; a service that is not known any more may be wished for by any generation."""
        seen = self.inner.observe(namespace, service)
        if not seen.generation and not seen.revisions:
            self._deleted.pop((namespace, service), None)
        return seen

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        """Return a replica's page."""
        return self.inner.metrics_page(namespace, replica)

    def touched(self, since: float) -> Collection[tuple[str, str]] | None:
        """Return which services something happened to."""
        return self.inner.touched(since)

    def again(self) -> None:
        """Apply every wish again, and go on with what is being removed."""
        for desired in self._desired_states.values():
            self.inner.apply(desired)
        for (namespace, service), generation in self._deleted.items():
            self.inner.delete(namespace, service, generation)
