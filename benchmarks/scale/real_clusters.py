"""Real API servers for the benchmark of turns: Kubernetes' own control plane, as the cluster tests start it.

etcd, API server, controller manager and scheduler are real, with RBAC; `nodes` brings nodes without a kubelet and what
a gateway reports. Fairlead is a user with the roles of `role.yaml`, in the priority level of service accounts. The API
server's metrics have no users: a FlowSchema of its own counts Fairlead's requests but those for pods' pages, which pass
by all FlowSchemas and which only Fairlead sends.
"""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from benchmarks.scale.installation import Requests, started, until
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.api import resource_types
from tests.cluster._support.gateway import gateway_api
from tests.cluster._support.kubeconfigs import flat
from tests.cluster.harness import CLAIM, make_claim
from tests.cluster.plane import ControlPlane, control_plane
from tests.servers import network
from tests.servers.parts import MissingPartError

_USER = "fairlead"
_PODS = "10.64.0.0/16"
_RBAC = "rbac.authorization.k8s.io/v1"
_FLOW = "flowcontrol.apiserver.k8s.io/v1"
_PAGES = "CONNECT pods/proxy"
_ALL, _OURS = "apiserver_request_total", "apiserver_flowcontrol_dispatched_requests_total"
_SAMPLE = re.compile(rf"^({_ALL}|{_OURS})\{{(.*)\}} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def isolate() -> None:
    """Move this process into a network of its own, in which pods have addresses; raises MissingPartError."""
    if not network.isolate():
        raise MissingPartError("pods get addresses in a network namespace, which takes root on Linux; run this as root")
    route = ("ip", "route", "add", "local", _PODS, "dev", "lo")
    try:
        subprocess.run(route, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingPartError(f"pods get addresses by `ip route`, of the package iproute2: {error}") from error


class RealClusters:
    """Control planes that run, each a cluster."""

    def __init__(self, planes: Sequence[ControlPlane]) -> None:
        self._planes = planes
        self._clients = [plane.client() for plane in planes]
        self._files = [flat(plane.user(_USER)) for plane in planes]

    @property
    def processes(self) -> Mapping[str, int]:
        """Return all processes of the control planes."""
        return {f"{name}-{number}": pid for number, each in enumerate(self._planes) for name, pid in each.pids.items()}

    def file(self, number: int) -> dict[str, Any]:
        """Return how a cluster and its Gateway are reached."""
        gateway = {"url": "http://127.0.0.1", "name": gateway_api.NAME, "namespace": gateway_api.NAMESPACE}
        return {"connection": {"kubeconfig": self._files[number]}, "gateway": gateway}

    def requests(self) -> Requests:
        """Return Fairlead's requests, and everybody's by verb and resource."""
        ours, kinds = 0, Counter[str]()
        for client in self._clients:
            for name, text, value in _SAMPLE.findall(client.get("/metrics").raise_for_status().text):
                labels = dict(_LABEL.findall(text))
                if name == _OURS and labels["flow_schema"] == _USER:
                    ours += int(float(value))
                elif name == _ALL:
                    resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                    kinds[f"{labels['verb']} {resource or 'other'}"] += int(float(value))
        return Requests(ours + kinds[_PAGES], kinds)

    def latency_ms(self) -> float:
        """Return the round trip of one request for the version, over a connection that is open."""
        began = time.monotonic()
        self._clients[0].get("/version").raise_for_status()
        return 1000 * (time.monotonic() - began)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()


@contextmanager
def real_clusters(home: Path, count: int) -> Iterator[RealClusters]:
    """Give so many clusters with nodes, in the network of `isolate`; raises MissingPartError."""
    with ExitStack() as stack:
        planes = [stack.enter_context(control_plane()) for _ in range(count)]
        for plane in planes:
            gateway_api.install(plane)
            make_claim(plane, CLAIM)
            with plane.client() as client:
                _let_in(client)
        files = [str(plane.kubeconfig) for plane in planes]
        command = ("-m", "benchmarks.scale.nodes", "--kubeconfig", *files, "--network", _PODS)
        stack.enter_context(started(home, "nodes", command))
        clusters = RealClusters(planes)
        stack.callback(clusters.close)
        until(lambda: all(map(_has_nodes, planes)), "the nodes")
        yield clusters


def _let_in(admin: httpx.Client) -> None:
    """Give Fairlead's user all roles of the driver, and a FlowSchema."""
    subject = {"kind": "User", "name": _USER, "apiGroup": "rbac.authorization.k8s.io"}
    path = f"/apis/{_RBAC}"
    for role in yaml.safe_load_all(Path(rbac.__file__).with_name("role.yaml").read_text()):
        name = role["metadata"]["name"]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        admin.post(f"{path}/clusterroles", json=role).raise_for_status()
        admin.post(f"{path}/clusterrolebindings", json=binding).raise_for_status()
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    rule = {
        "subjects": [{"kind": "User", "user": {"name": _USER}}],
        "resourceRules": [everything],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": 1000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [rule],
    }
    schema = {"metadata": {"name": _USER}, "spec": spec}
    admin.post(f"/apis/{_FLOW}/flowschemas", json=schema).raise_for_status()


def _has_nodes(plane: ControlPlane) -> bool:
    with plane.client() as admin:
        return bool(admin.get(resource_types.NODE.path("")).raise_for_status().json()["items"])
