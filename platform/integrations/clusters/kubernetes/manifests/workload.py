"""What runs a revision: Deployment, Service and PodDisruptionBudget; and what they share. Pure."""

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import (
    GRPC_PORT,
    HTTP_PORT,
    METRICS_PORT,
    SERVICE,
    Manifest,
    manifest,
    nobody,
    revision_labels,
    selector,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.pods import pod_template
from integrations.clusters.kubernetes.options import Options, Reach

_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def deployment(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the Deployment; it says no number of replicas, which goes through the scale subresource alone."""
    return manifest(
        "apps/v1",
        "Deployment",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec={
            "selector": {"matchLabels": selector(desired.service, revision.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "revisionHistoryLimit": 1,
            "template": pod_template(desired, revision, options),
        },
    )


def service(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the Service that routes name as the revision's backend."""
    ports = [
        {"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP", "appProtocol": "http"},
        {
            "name": "grpc",
            "port": GRPC_PORT,
            "targetPort": "grpc",
            "protocol": "TCP",
            "appProtocol": "kubernetes.io/h2c",
        },
    ]
    return manifest(
        "v1",
        "Service",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec={"type": "ClusterIP", "selector": selector(desired.service, revision.name), "ports": ports},
    )


def service_of_nobody(desired: Desired) -> Manifest:
    """Return the Service without endpoints that routes name while no revision may answer."""
    ports = [
        {"name": name, "port": port, "protocol": "TCP"} for name, port in (("http", HTTP_PORT), ("grpc", GRPC_PORT))
    ]
    labels = service_labels(desired.service)
    return manifest(
        "v1", "Service", desired, nobody(desired.service), labels, spec={"type": "ClusterIP", "ports": ports}
    )


def disruption_budget(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the budget by which a drained node takes one replica at a time; broken ones hold nobody up."""
    return manifest(
        "policy/v1",
        "PodDisruptionBudget",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec={
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(desired.service, revision.name)},
        },
    )


def service_account(desired: Desired) -> Manifest:
    """Return the identity of a service's pods, which may do nothing."""
    labels = service_labels(desired.service)
    return manifest("v1", "ServiceAccount", desired, desired.service, labels, automountServiceAccountToken=False)


def network_policy(desired: Desired, options: Options) -> Manifest:
    """Return who may reach a service's pods: the gateway for requests, monitoring for metrics, nobody else."""
    ingress = [_from([options.gateway.namespace], HTTP_PORT, GRPC_PORT)]
    if options.reach is Reach.API_SERVER:
        # The API server comes from an address of its own, in no namespace.
        ingress.append({"ports": _ports(METRICS_PORT)})
    elif options.monitoring_namespaces:
        ingress.append(_from(options.monitoring_namespaces, METRICS_PORT))
    return manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        desired,
        desired.service,
        service_labels(desired.service),
        spec={
            "podSelector": {"matchLabels": {SERVICE: desired.service}},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    )


def _from(namespaces: "list[str] | tuple[str, ...]", *ports: int) -> Manifest:
    return {
        "from": [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}} for name in namespaces],
        "ports": _ports(*ports),
    }


def _ports(*ports: int) -> list[Manifest]:
    return [{"port": port, "protocol": "TCP"} for port in ports]
