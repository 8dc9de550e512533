"""Prometheus and its adapter for the metrics APIs as an operator has them: the chart's monitors and rules.

Prometheus finds pods and gives their series the labels that the chart's PodMonitor says; the adapter
answers the controller of HorizontalPodAutoscalers by the chart's rules. What containers take of CPU and memory is asked
of kubelets, and the adapter answers the API of a metrics server with it, as it does where there is no other. Both are
the real programs, and may do what they may on a cluster: the adapter has the rights of its own manifests.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.charts.chart import objects, values
from tests.cluster._support.metrics.aggregated import aggregated
from tests.cluster._support.metrics.custom_metrics import GROUP, VERSION
from tests.cluster._support.metrics.discovery import discovery
from tests.cluster.binaries import prometheus_adapter
from tests.cluster.plane import ControlPlane, ends_with_us
from tests.servers.parts import free_port
from tests.servers.prometheus import Prometheus, prometheus

Json = dict[str, Any]
_NAME = "prometheus-adapter"
_RESOURCES = "metrics.k8s.io", "v1beta1"
_WITHIN_S = 120.0
_ROLES = "/apis/rbac.authorization.k8s.io/v1"


@contextmanager
def metrics_adapter(plane: ControlPlane, folder: Path) -> Iterator[Prometheus]:
    """Serve the pods' metrics in the APIs of metrics inside the block; raises MissingPartError."""
    program, port = prometheus_adapter(), free_port()
    pair = plane.issue(_NAME, addresses=["127.0.0.1"])
    kubeconfig = plane.user(_NAME)
    with (
        _rights(plane),
        discovery(plane, "default") as found,
        prometheus([], folder, jobs=[scrape_job(found), _kubelets(found, plane)]) as scraper,
    ):
        flags = [f"--{each}kubeconfig={kubeconfig}" for each in ("lister-", "authentication-", "authorization-")]
        rules = folder / "rules.yaml"
        of_chart = yaml.safe_load(_of_chart("ConfigMap", "-adapter-rules")["data"]["config.yaml"])
        rules.write_text(json.dumps({**of_chart, "resourceRules": _RESOURCE_RULES}))  # JSON is YAML
        flags += [f"--config={rules}", f"--prometheus-url=http://127.0.0.1:{scraper.port}/"]
        flags += [f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}"]
        flags += ["--bind-address=127.0.0.1", f"--secure-port={port}", "--metrics-relist-interval=1s"]
        log = folder / f"{_NAME}.log"
        with log.open("wb") as told:
            process = subprocess.Popen(ends_with_us(str(program), *flags), stdout=told, stderr=told)
        try:
            with aggregated(plane, GROUP, VERSION, port), aggregated(plane, *_RESOURCES, port):
                _until_served(plane, process, log)
                yield scraper
        finally:
            process.terminate()
            process.wait(timeout=30)


def scrape_job(found: str) -> Json:
    """Return what Prometheus' operator makes of the chart's PodMonitor of services, scraped more often.

    Args:
        found: where pods are discovered.
    """
    monitor = _of_chart("PodMonitor", "-services")
    (label,) = (each["key"] for each in monitor["spec"]["selector"]["matchExpressions"])
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    meta = "__meta_kubernetes"
    relabel = [
        {"source_labels": [f"{meta}_pod_labelpresent_{label.replace('/', '_')}"], "regex": "true", "action": "keep"},
        {"source_labels": [f"{meta}_pod_container_port_name"], "regex": endpoint["port"], "action": "keep"},
        {"source_labels": [f"{meta}_namespace"], "target_label": "namespace"},
        {"source_labels": [f"{meta}_pod_name"], "target_label": "pod"},
        *(
            {"source_labels": each["sourceLabels"], "target_label": each["targetLabel"]}
            for each in endpoint["relabelings"]
        ),
    ]
    return {
        "job_name": "services",
        "metrics_path": endpoint["path"],
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "http_sd_configs": [{"url": f"{found}/pods", "refresh_interval": "1s"}],
        "relabel_configs": relabel,
    }


def _kubelets(found: str, plane: ControlPlane) -> Json:
    """Return the job that asks kubelets what their containers take."""
    own = plane.issue("prometheus")
    return {
        "job_name": "kubelets",
        "scheme": "https",
        "tls_config": {"ca_file": str(plane.authority), "cert_file": str(own.certificate), "key_file": str(own.key)},
        "metrics_path": "/metrics/resource",
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "http_sd_configs": [{"url": f"{found}/nodes", "refresh_interval": "1s"}],
    }


def _resource_rule(series: str) -> Json:
    """Return how the adapter adds up what a container or a node takes, in the shape of its own manifests' rules."""
    kinds = ("namespace", "node", "pod")
    return {
        "containerLabel": "container",
        "containerQuery": f"sum by (<<.GroupBy>>) ({series})",
        "nodeQuery": f"sum by (<<.GroupBy>>) ({series})",
        "resources": {"overrides": {kind: {"resource": kind} for kind in kinds}},
    }


_RESOURCE_RULES = {
    "cpu": _resource_rule("rate(container_cpu_usage_seconds_total{<<.LabelMatchers>>}[10s])"),
    "memory": _resource_rule("container_memory_working_set_bytes{<<.LabelMatchers>>}"),
    "window": "10s",
}


def _of_chart(kind: str, suffix: str) -> Json:
    """Return an object of the chart, as the values with all for Prometheus have it rendered."""
    (found,) = (
        each
        for each in objects(values("monitored"))
        if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)
    )
    return found


@contextmanager
def _rights(plane: ControlPlane) -> Iterator[None]:
    """Give the adapter, and the controller that asks it, the rights that the adapter's own manifests give them."""
    group = "rbac.authorization.k8s.io"
    adapter = {"kind": "User", "name": _NAME, "apiGroup": group}
    controller = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
    reads = {
        "apiGroups": [""],
        "resources": ["nodes", "namespaces", "pods", "services"],
        "verbs": ["get", "list", "watch"],
    }
    asks = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}
    made = [
        ("clusterroles", {"metadata": {"name": _NAME}, "rules": [reads]}),
        ("clusterroles", {"metadata": {"name": "custom-metrics-server-resources"}, "rules": [asks]}),
        *(
            ("clusterrolebindings", _binding(name, "ClusterRole", role, subject))
            for name, role, subject in (
                (_NAME, _NAME, adapter),
                (f"{_NAME}-delegator", "system:auth-delegator", adapter),
                ("hpa-controller-custom-metrics", "custom-metrics-server-resources", controller),
            )
        ),
        (
            "namespaces/kube-system/rolebindings",
            _binding(f"{_NAME}-auth-reader", "Role", "extension-apiserver-authentication-reader", adapter),
        ),
    ]
    with plane.client() as client:
        for place, body in made:
            client.post(f"{_ROLES}/{place}", json=body).raise_for_status()
        try:
            yield
        finally:
            for place, body in made:
                client.delete(f"{_ROLES}/{place}/{body['metadata']['name']}")


def _binding(name: str, kind: str, role: str, subject: Json) -> Json:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}


def _until_served(plane: ControlPlane, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _WITHIN_S
    with plane.client() as client:
        while not all(_is_served(client, *each) for each in ((GROUP, VERSION), _RESOURCES)):
            said = log.read_text(errors="replace")[-3000:]
            assert process.poll() is None, f"the adapter ended: {said}"
            assert time.monotonic() < deadline, f"the adapter does not serve metrics within {_WITHIN_S:g} s: {said}"
            time.sleep(0.1)


def _is_served(client: httpx.Client, group: str, version: str) -> bool:
    try:
        return client.get(f"/apis/{group}/{version}").status_code == 200
    except httpx.HTTPError:
        return False
