"""Nodes without a kubelet, for a benchmark: their pods are ready at once, and one program serves all their metrics.

    python -m benchmarks.scale.nodes --kubeconfig FILE [FILE ...] --network 10.64.0.0/16

The API server, its controllers and the scheduler are real. This process does what a kubelet reports: a bound pod is
Running and Ready with an address of its own in a network of the loopback device, and one that is being deleted ends. No
container runs. At port 8002 of every address it serves the metrics page of that address' pod, with twenty requests a
second. Routes are accepted by their Gateway in the same moment, as Envoy Gateway would; no request passes.
"""

import argparse
import ipaddress
import itertools
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from benchmarks.scale.api_server import Receive, Send, metrics_page, send_text
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.manifests.names import METRICS_PORT, SERVICE
from tests.cluster._support.gateway.gateway_api import CLASS, CONTROLLER, NAME, NAMESPACE

Json = dict[str, Any]
_NODES = 4
_AMOUNTS = {"cpu": "2000", "memory": "8Ti", "ephemeral-storage": "8Ti", "pods": "1000"}
_AGAIN_S = 0.25
_BEGAN = "2026-01-01T00:00:00Z"
_MERGE = {"content-type": "application/merge-patch+json"}
_BY_TYPE = {"content-type": "application/strategic-merge-patch+json"}


class Pages:
    """ASGI application: the metrics pages of all pods.

    Attributes:
        models: what the pod at an address serves.
    """

    def __init__(self) -> None:
        self.models: dict[str, str] = {}
        self._began = time.time()

    async def __call__(self, scope: dict[str, Any], _: Receive, send: Send) -> None:
        """Answer with the page of the pod whose address was called."""
        model = self.models.get(scope["server"][0], "")
        await send_text(send, metrics_page(model, self._began, round(20 * (time.time() - self._began))))


class Nodes:
    """The nodes and the gateway of one cluster: threads that write what kubelets and a gateway report."""

    def __init__(self, client: httpx.Client, addresses: Iterator[str], pages: Pages) -> None:
        self._client, self._addresses, self._pages = client, addresses, pages
        self._given: dict[str, str] = {}

    def start(self) -> None:
        """Register the nodes, and follow pods and routes from now on."""
        for number in range(_NODES):
            self._register(f"node-{number}")
        conditions = [condition(each, 1) for each in ("Accepted", "Programmed")]
        self._report(resource_types.GATEWAY.path(NAMESPACE, NAME), {"conditions": conditions})
        self._report(resource_types.GATEWAY_CLASS.path("", CLASS), {"conditions": [condition("Accepted", 1)]})
        bound = {"fieldSelector": "spec.nodeName!="}
        self._follow(resource_types.POD.path(""), self._run, bound)
        for kind in resource_types.ROUTES:
            self._follow(kind.path(""), self._accept, {})

    def _register(self, name: str) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self._client.post(resource_types.NODE.path(""), json=node).raise_for_status()
        status = {"capacity": _AMOUNTS, "allocatable": _AMOUNTS, "conditions": [condition("Ready", 1)]}
        place = resource_types.NODE.path("", name)
        self._report(place, status)
        # Nothing else removes the taint not-ready.
        self._client.patch(place, json={"spec": {"taints": None}}, headers=_MERGE).raise_for_status()

    def _run(self, pod: Json) -> None:
        """Let a pod be ready, or end."""
        metadata = pod["metadata"]
        place = resource_types.POD.path(metadata["namespace"], metadata["name"])
        if "deletionTimestamp" in metadata:
            self._pages.models.pop(self._given.pop(metadata["uid"], ""), None)
            self._client.request("DELETE", place, json={"gracePeriodSeconds": 0})
        elif pod["status"].get("phase") == "Pending":
            ip = self._given.get(metadata["uid"]) or next(self._addresses)
            self._given[metadata["uid"]] = ip
            self._pages.models[ip] = metadata.get("labels", {}).get(SERVICE, "")
            self._report(place, ready(pod["spec"], ip), _BY_TYPE)

    def _accept(self, route: Json) -> None:
        """Have the Gateway accept the route's present generation."""
        metadata = route["metadata"]
        conditions = [condition(each, metadata["generation"]) for each in ("Accepted", "ResolvedRefs")]
        parents = [
            {"parentRef": each, "controllerName": CONTROLLER, "conditions": conditions}
            for each in route["spec"]["parentRefs"]
        ]
        if route.get("status", {}).get("parents") != parents:
            kind = next(each for each in resource_types.ROUTES if each.kind == route["kind"])
            self._report(kind.path(metadata["namespace"], metadata["name"]), {"parents": parents})

    def _report(self, place: str, status: Json, headers: Mapping[str, str] = _MERGE) -> None:
        answer = self._client.patch(f"{place}/status", json={"status": status}, headers=dict(headers))
        if answer.status_code != 404:  # it was deleted meanwhile
            answer.raise_for_status()

    def _follow(self, path: str, act: Callable[[Json], None], query: Mapping[str, str]) -> None:
        threading.Thread(target=self._act, args=(path, act, query), name=f"watch-{path}", daemon=True).start()

    def _act(self, path: str, act: Callable[[Json], None], query: Mapping[str, str]) -> None:
        patience = httpx.Timeout(10, read=None)
        while True:
            try:
                with self._client.stream("GET", path, params={**query, "watch": "true"}, timeout=patience) as answer:
                    answer.raise_for_status()
                    for line in answer.iter_lines():
                        event = json.loads(line)
                        if event["type"] in ("ADDED", "MODIFIED"):
                            act(event["object"])
            except httpx.HTTPError as error:
                print(f"{path}: {error}", flush=True)
            time.sleep(_AGAIN_S)  # a watch ends after some minutes, and the next one begins with all objects


def ready(spec: Mapping[str, Any], ip: str) -> Json:
    """Return the status of a pod of that spec whose containers all are ready."""
    running = {"started": True, "state": {"running": {"startedAt": _BEGAN}}}
    over = {"state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _BEGAN, "finishedAt": _BEGAN}}}

    def status(container: Mapping[str, Any], state: Json) -> Json:
        own = {"name": container["name"], "image": container["image"], "imageID": ""}
        return {**own, "ready": True, "restartCount": 0, **state}

    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": _BEGAN,
        "conditions": [condition(each) for each in ("Initialized", "ContainersReady", "Ready")],
        "initContainerStatuses": [
            status(each, running if each.get("restartPolicy") == "Always" else over)
            for each in spec.get("initContainers", ())
        ],
        "containerStatuses": [status(each, running) for each in spec["containers"]],
    }


def condition(name: str, generation: int | None = None) -> Json:
    """Return a condition that holds, of an object's generation where conditions of its kind have one."""
    own = {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": _BEGAN}
    return own if generation is None else {**own, "observedGeneration": generation}


def client_of(kubeconfig: Path) -> httpx.Client:
    """Return a client of the API server by a kubeconfig of `ControlPlane`."""
    content = json.loads(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    return httpx.Client(base_url=cluster["server"], verify=context, timeout=10, trust_env=False)


def main() -> None:
    """Run the nodes until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, nargs="+", required=True)
    parser.add_argument("--network", type=ipaddress.ip_network, required=True, help="of the addresses of pods")
    options = parser.parse_args()
    pages, numbers = Pages(), itertools.count(1)
    for kubeconfig in options.kubeconfig:
        addresses = (str(options.network[number]) for number in numbers)
        Nodes(client_of(kubeconfig), addresses, pages).start()
    # Every address, of a network that this process and the API servers alone are in.
    own: dict[str, Any] = {"log_level": "warning", "timeout_keep_alive": 90, "lifespan": "off"}
    uvicorn.run(pages, host="0.0.0.0", port=METRICS_PORT, **own)


if __name__ == "__main__":
    main()
