"""Deployment of a revision, with its Service and PodDisruptionBudget, and what these share. Pure."""

from integrations.clusters.base import Desired, DesiredRevision, Rolling
from integrations.clusters.kubernetes.manifests.names import (
    GRPC_PORT,
    HTTP_PORT,
    SLEPT,
    Manifest,
    manifest,
    no_endpoints_name,
    revision_labels,
    selector,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.pinned import pinned_template
from integrations.clusters.kubernetes.manifests.workloads.custom_predictor import custom_template
from integrations.clusters.kubernetes.manifests.workloads.pods import pod_template
from integrations.clusters.kubernetes.manifests.workloads.pool_pods import pool_template
from integrations.clusters.kubernetes.options import Options

ONE_BY_ONE = Rolling(max_surge=1, max_unavailable=0)
"""The new one first."""


def deployment(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the Deployment, without a number of replicas, which is set through the scale subresource only."""
    made = manifest(
        "apps/v1",
        "Deployment",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec=rolling(
            selector(desired.service, revision.name),
            pinned_template(revision, revision.name) or _template(desired, revision, options),
            _rolling_of(desired, revision),
        ),
    )
    if revision.slept_at is not None:
        made["metadata"]["annotations"] = {SLEPT: repr(revision.slept_at)}
    return made


def _template(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    if revision.custom is not None:
        return custom_template(desired, revision, revision.custom, options)
    if revision.is_pool:
        return pool_template(desired, revision, options)
    return pod_template(desired, revision, options)


def _rolling_of(desired: Desired, revision: DesiredRevision) -> Rolling:
    """Return the service's rolling update, unless the revision has so few replicas now that none might serve."""
    asked = desired.rolling
    return asked if asked is not None and asked.leaves_one(revision.replicas) else ONE_BY_ONE


def rolling(chosen: dict[str, str], template: Manifest, how: Rolling = ONE_BY_ONE) -> Manifest:
    """Return the spec of a Deployment with this rolling update."""
    numbers = {"maxSurge": how.max_surge, "maxUnavailable": how.max_unavailable}
    return {
        "selector": {"matchLabels": chosen},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": numbers},
        "revisionHistoryLimit": 1,
        "template": template,
    }


def service(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the Service of the predictor's pods, to which routes lead or companions connect."""
    labels = revision_labels(desired.service, revision.name)
    spec = service_of(selector(desired.service, revision.name))
    return manifest("v1", "Service", desired, revision.name, labels, spec=spec)


def service_of(chosen: dict[str, str]) -> Manifest:
    """Return the spec of a Service with V2 over HTTP and gRPC."""
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
    return {"type": "ClusterIP", "selector": chosen, "ports": ports}


def service_without_endpoints(desired: Desired) -> Manifest:
    """Return the Service without endpoints to which routes lead while no revision may answer."""
    ports = [
        {"name": name, "port": port, "protocol": "TCP"} for name, port in (("http", HTTP_PORT), ("grpc", GRPC_PORT))
    ]
    labels = service_labels(desired.service)
    return manifest(
        "v1", "Service", desired, no_endpoints_name(desired.service), labels, spec={"type": "ClusterIP", "ports": ports}
    )


def disruption_budget(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the budget by which a drain takes one replica at a time; broken replicas do not block it."""
    return manifest(
        "policy/v1",
        "PodDisruptionBudget",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec=disruption_budget_of(selector(desired.service, revision.name)),
    )


def disruption_budget_of(chosen: dict[str, str]) -> Manifest:
    """Return the spec of such a budget."""
    return {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": chosen},
    }


def service_account(desired: Desired, options: Options) -> Manifest:
    """Return the identity of a service's pods, which has no rights on the cluster."""
    labels = service_labels(desired.service)
    made = manifest("v1", "ServiceAccount", desired, desired.service, labels, automountServiceAccountToken=False)
    if options.service_account_annotations:
        made["metadata"]["annotations"] = dict(options.service_account_annotations)
    return made
