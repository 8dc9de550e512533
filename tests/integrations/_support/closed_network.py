"""A service whose network is closed, with a transformer, granted egress and a logger; beside it Jobs and a replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from integrations.clusters.base import Candidate, Desired, DesiredCompanion, DesiredRevision, Job, JobKind, Logger
from integrations.clusters.kubernetes.manifests import Manifest, job, render
from integrations.clusters.kubernetes.manifests.jobs.replay import replay
from integrations.clusters.kubernetes.manifests.network.policies import of_jobs, of_replay
from integrations.clusters.kubernetes.options import (
    ClosedNetwork,
    Destination,
    GatewayReference,
    ModelSource,
    Options,
)
from tests._support.network_policies import Place, pods_of

WEB = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "web"}
OPTIONS = Options(
    GatewayReference("models", "gateways", proxy_namespace="envoy-gateway-system"),
    "fairlead/serving-runtime:test",
    models_from=ModelSource.REGISTRY,
    monitoring_namespaces=("monitoring",),
    name="here",
    control_plane_url="http://fairlead.fairlead",
    payloads_folder="/payloads",
    network=ClosedNetwork(
        egress=(
            Destination(namespace="fairlead", pods=WEB, ports=(8080,)),
            Destination(ip_network("10.20.0.0/16"), ports=(443,)),
        )
    ),
    egress_allowed=(ip_network("192.168.7.0/24"),),
)
PLAIN, CANARY, GRANTED, LOGGED = "digits-00001", "digits-00002", "digits-00003", "digits-00004"
OUTSIDE = {
    "the internet": "93.184.216.34",
    "the internet by IPv6": "2606:2800:220:1::1",
    "storage": "10.20.3.4",
    "the API server": "10.96.0.1",
    "a private network": "192.168.7.8",
    "metadata": "169.254.169.254",
    "credentials of pods": "169.254.170.23",
    "metadata of AWS by IPv6": "fd00:ec2::254",
    "metadata of Azure": "168.63.129.16",
    "metadata of Alibaba": "100.100.100.200",
    "metadata of Oracle": "192.0.0.192",
    "metadata by NAT64": "64:ff9b::a9fe:a9fe",
    "metadata by 6to4": "2002:a9fe:a9fe::1",
}


@dataclass(frozen=True)
class Scene:
    """What is applied, and the places that connections go from and to, by name."""

    policies: Sequence[Manifest]
    places: Mapping[str, Place]


def desired(namespace: str, service: str = "digits") -> Desired:
    more: dict[str, dict[str, Any]] = {
        PLAIN: {},
        CANARY: {"transformer": DesiredCompanion("example.org/tokenizer:1", 1)},
        GRANTED: {
            "egress": True,
            "transformer": DesiredCompanion("example.org/tokenizer:1", 1),
            "explainer": DesiredCompanion("example.org/shap:1", 1, http_port=9090),
        },
        LOGGED: {"logger": Logger("http://dumper/")},
        "digits-00005": {"logger": Logger("https://events.example.com/in")},
    }
    revisions = tuple(
        DesiredRevision(name, service, "1", "file:///a", "sha256:aa", 1, 20, **own) for name, own in more.items()
    )
    return Desired(namespace, service, 1, revisions)


def manifests(namespace: str, options: Options = OPTIONS) -> list[Manifest]:
    """Return everything that the driver makes of the service, of two Jobs, and of two replays."""
    wanted = desired(namespace)
    made = render(wanted, {each.name: 20 for each in wanted.revisions}, options)
    for name, egress in (("asks", False), ("asks-granted", True)):
        asked = Job(JobKind.INSPECT, "file:///a", 60, "sha256:aa", egress=egress)
        made.append(job(asked, name, options))
    for name, egress in (("replays", False), ("replays-granted", True)):
        candidate = Candidate(
            "version 2", "digits", "2", "file:///a", namespace=namespace, service="digits", replay="7", egress=egress
        )
        replayed = replay(candidate, name, {}, options)
        made += [
            replayed,
            of_replay({**replayed, "metadata": {**replayed["metadata"], "uid": "1"}}, options, egress=egress),
        ]
    return [*made, *of_jobs(options)]


def scene(namespace: str, made: Sequence[Manifest], jobs_namespace: str = "fairlead-jobs") -> Scene:
    """Return the scene of objects, rendered or as an API server has them."""
    ours = [each for each in made if each["kind"] in ("Deployment", "Job")]
    jobs = [each for each in ours if each["metadata"]["namespace"] != namespace]
    others = {
        "a pod beside": Place("10.244.9.1", namespace, {"app": "dumper"}),
        "a stranger": Place("10.244.9.2", "strangers", {"app": "x"}),
        "the gateway": Place("10.244.9.3", "envoy-gateway-system", {"app": "envoy"}),
        "the web": Place("10.244.9.4", "fairlead", WEB),
        "the database": Place("10.244.9.5", "fairlead", {"app.kubernetes.io/component": "postgresql"}),
        "Prometheus": Place("10.244.9.6", "monitoring", {}),
        "DNS": Place("10.244.9.7", "kube-system", {"k8s-app": "kube-dns"}),
        "the rest of kube-system": Place("10.244.9.8", "kube-system", {"k8s-app": "metrics-server"}),
    }
    return Scene(
        [each for each in made if each["kind"] == "NetworkPolicy"],
        {
            **pods_of([each for each in ours if each not in jobs], namespace),
            **pods_of(jobs, jobs_namespace),
            **others,
            **{name: Place(ip) for name, ip in OUTSIDE.items()},
        },
    )
