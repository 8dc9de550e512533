"""A stand-in for the kubelet, for tests only: a Node whose pods run as processes of this machine.

Each pod has an address of its own, 10.x or fd00:x on the loopback device, since a Service takes no address of 127/8.
There are no images and no name spaces: `images` says what an image's command is here, and paths of mounts in arguments
become folders of this machine. What the product's pods use is honoured: see `pod.py`.
"""

import itertools
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.cluster._support.changes import Changes
from tests.cluster._support.node import executing
from tests.cluster._support.node.kubelet_server import KubeletServer
from tests.cluster._support.node.pod import Image, Pod
from tests.cluster.plane import ControlPlane

_AT_LEAST_EVERY_S = 1.0
_AGAIN_S = 0.25
_numbers = itertools.count(1)


class Kubelet:
    """One node. `claims` says which folder a PersistentVolumeClaim is, by its name; with `finds_names` its pods find
    Services by their names.
    """

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        *,
        images: Mapping[str, Image],
        claims: Mapping[str, Path],
        cpu_cores: float = 64,
        finds_names: bool = False,
    ) -> None:
        self._folder = folder
        self._finds_names = finds_names
        self._cpu_cores = cpu_cores
        self._images = images
        self._claims = claims
        self._client = plane.client()
        self._host = plane.loopback
        self._number = next(_numbers)
        # By the process too: two test runs at once share the loopback device.
        first, second = 64 + os.getpid() % 128, (os.getpid() // 128 + self._number) % 256
        network = f"fd00:{first:x}:{second:x}::" if plane.is_ipv6 else f"10.{first}.{second}."
        self._addresses = (f"{network}{host}" for host in itertools.count(1))
        self._pods: dict[str, Pod] = {}
        self._changes = Changes(plane, "/api/v1/pods", selector=f"spec.nodeName={self.name}")
        self._files = Changes(plane, "/api/v1/configmaps", "/api/v1/secrets")
        self._closing = threading.Event()
        self._paused = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name=f"{self.name}-watcher")
        self._server = KubeletServer(self._said, self._begin, self._measured, self._host, plane.kubelet_context())
        self.trouble: list[str] = []

    @property
    def name(self) -> str:
        """Return the node's name."""
        return f"node-{self._number}"

    def start(self) -> None:
        """Register the node, and run what is bound to it."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": {}}}
        self._client.post("/api/v1/nodes", json=node).raise_for_status()
        amounts = {"cpu": str(self._cpu_cores), "memory": "64Gi", "ephemeral-storage": "1Ti", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "a stand-in"}
        self._server.start()
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": self._host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.port}},
            "declaredFeatures": [executing.FEATURE],
        }
        self._merge(f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._merge(f"/api/v1/nodes/{self.name}", {"spec": {"taints": None}})  # not-ready, which nobody else removes
        self._changes.start()
        self._files.start()
        self._watcher.start()

    def pod(self, prefix: str) -> Pod:
        """Return the only pod whose name begins like that."""
        (found,) = (pod for pod in self._pods.values() if pod.name.startswith(prefix))
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let no pod be started or told to end inside the block."""
        self._paused.set()
        try:
            yield
        finally:
            self._paused.clear()
            self._changes.wake()

    def close(self) -> None:
        """Kill all pods, take their addresses away, and remove the node and what was bound to it."""
        self._closing.set()
        self._changes.close()
        self._watcher.join()
        self._server.close()
        for pod in self._pods.values():
            pod.kill()
        for pod in self._pods.values():
            pod.join()
        self._client.delete(f"/api/v1/nodes/{self.name}")
        for pod in self._pods.values():
            pod.forget()
        self._files.close()
        self._client.close()

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                if not self._paused.is_set():
                    self._look()
            except httpx.HTTPError as error:  # the API server is away: pods go on, as on a real node
                self.trouble.append(str(error))
                self._closing.wait(_AGAIN_S)
            else:
                self._changes.wait(_AT_LEAST_EVERY_S)

    def _look(self) -> None:
        answer = self._client.get("/api/v1/pods", params={"fieldSelector": f"spec.nodeName={self.name}"})
        answer.raise_for_status()
        there = {each["metadata"]["uid"]: each for each in answer.json()["items"]}
        for uid, found in there.items():
            if uid not in self._pods:
                self._pods[uid] = self._started(found)
            if "deletionTimestamp" in found["metadata"]:
                self._pods[uid].end(found["metadata"].get("deletionGracePeriodSeconds", 0))
        for uid, pod in list(self._pods.items()):
            if uid not in there:
                pod.kill()
            if not pod.is_alive():
                pod.join()
                del self._pods[uid]

    def _started(self, found: dict[str, Any]) -> Pod:
        folder = Path(tempfile.mkdtemp(prefix=f"{found['metadata']['name']}-", dir=self._folder))
        pod = Pod(
            found,
            self._client,
            folder,
            next(self._addresses),
            images=self._images,
            claims=self._claims,
            finds_names=self._finds_names,
            files=self._files,
        )
        pod.start()
        return pod

    def _said(self, namespace: str, name: str, container: str, previous: bool) -> bytes | None:
        found = self._found(namespace, name)
        return None if found is None else found.said(container, previous=previous)

    def _begin(
        self, namespace: str, name: str, container: str, argv: Sequence[str]
    ) -> "subprocess.Popen[bytes] | None":
        found = self._found(namespace, name)
        return None if found is None else found.begin_in(container, argv)

    def _measured(self) -> bytes:
        """Return what pods take, by the names of a kubelet's stable metrics."""
        lines = []
        for pod in list(self._pods.values()):
            for container, cpu_s, memory_bytes in pod.usage():
                labels = f'{{container="{container}",namespace="{pod.namespace}",pod="{pod.name}"}}'
                lines.append(f"container_cpu_usage_seconds_total{labels} {cpu_s}\n")
                lines.append(f"container_memory_working_set_bytes{labels} {memory_bytes}\n")
        return "".join(lines).encode()

    def _found(self, namespace: str, name: str) -> Pod | None:
        pods = list(self._pods.values())
        return next((pod for pod in pods if pod.namespace == namespace and pod.name == name), None)

    def _merge(self, path: str, changes: dict[str, Any]) -> None:
        headers = {"content-type": "application/merge-patch+json"}
        self._client.patch(path, json=changes, headers=headers).raise_for_status()


@contextmanager
def address(ip: str) -> Iterator[None]:
    """Let the loopback device have an address inside the block; one that a killed run left is taken over."""
    own = f"{ip}/{128 if ':' in ip else 32}"
    subprocess.run(["ip", "address", "replace", own, "dev", "lo"], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "address", "del", own, "dev", "lo"], check=False, capture_output=True)
