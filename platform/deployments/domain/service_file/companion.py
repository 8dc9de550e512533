"""Companions of a predictor in a service file: KServe's `spec.transformer` and `spec.explainer`. Pure.

Each is one container. The transformer is in front of the predictor, the explainer takes explain requests; both call
the predictor themselves. On the local cluster it is a program, and part of each replica.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clusters.domain.resources import parse_resources, resources_json
from common.files.document import Document
from deployments.domain.service_file.containers import is_program, parse_source, parse_words, source_json
from deployments.domain.service_file.scaling import MAX_REPLICAS
from deployments.domain.service_file.variables import env_json, parse_env
from integrations.clusters.base import CompanionKind, Resources, SecretKeyRef

HTTP_PORT, GRPC_PORT = 8080, 8081  # KServe's ModelServer
_DEFAULT_PERCENT = 80.0  # KServe's default target of CPU
_PORTS = {"http": "http", "http1": "http", "grpc": "grpc", "h2c": "grpc"}
_INSTEAD = {
    "serviceAccountName": "pods of a service have its own account, which may do nothing",
    "volumeMounts": "the container has /tmp to write to and nothing else",
    "securityContext": "pods satisfy the Pod Security Standard restricted; patch them where that has to be otherwise",
}
_TYPES = ("alibi", "aix", "art")  # KServe's explainers with an image of their own
_ARTICLES = {CompanionKind.TRANSFORMER: "a transformer", CompanionKind.EXPLAINER: "an explainer"}


class CompanionMetric(StrEnum):
    """The scaling metric of a companion: the share used of what it requests."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Companion:
    """The transformer or the explainer of a service.

    Attributes:
        image: of a program its record, `NAME@sha256:…`; empty until its file is applied.
        command, args: instead of the image's own; empty keeps those.
        secret_env: variables whose values are in secrets.
        scale_percent: how much of the requested CPU or memory a replica should use.
        http_port, grpc_port: its ports for V2 requests; a program's are chosen where it starts.
        working_dir: the folder of a program; empty for an image.
    """

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    min_replicas: int = 1
    max_replicas: int = 1
    scale_metric: CompanionMetric = CompanionMetric.CPU
    scale_percent: float = _DEFAULT_PERCENT
    http_port: int = HTTP_PORT
    grpc_port: int = GRPC_PORT
    working_dir: str = ""

    @property
    def is_automatic(self) -> bool:
        """Return whether its number of replicas follows the load."""
        return self.min_replicas < self.max_replicas

    def within(self, replicas: int) -> int:
        """Return the nearest allowed number of replicas."""
        return max(self.min_replicas, min(self.max_replicas, replicas))


def field_of(kind: CompanionKind) -> str:
    """Return the dotted name of a companion's field."""
    return f"spec.{kind}"


def container_field(kind: CompanionKind) -> str:
    """Return the dotted name of the field of a companion's container."""
    return f"{field_of(kind)}.containers[0]"


def image_of(kind: CompanionKind) -> str:
    """Return the dotted name of the field of a companion's image."""
    return f"{container_field(kind)}.image"


def longest_name(kind: CompanionKind) -> int:
    """Return how long a service's name may be: a revision's name with the companion's suffix has to be a DNS label."""
    return 63 - len(f"-00001-{kind}")


def parse_companion(spec: Document, kind: CompanionKind, service: str) -> Companion | None:
    """Return the `spec.transformer` or `spec.explainer`; None without it."""
    its, what = spec.optional(kind.value), _ARTICLES[kind]
    if its is None:
        return None
    if len(service) > (longest := longest_name(kind)):
        spec.fault(
            kind.value,
            f"cannot be honoured for a service whose name has {len(service)} characters; with {what} it may have "
            f"{longest}",
        )
    if kind is CompanionKind.EXPLAINER and (named := next((each for each in _TYPES if each in its.names), "")):
        its.fault(named, "is a type of explainer with an image of KServe's; name its image in containers instead")
        return None
    containers = its.documents("containers")
    if len(containers) != 1:
        its.fault("containers", f"has {len(containers)} entries; {what} is one container")
        containers = [its.or_empty("no container")]
    container = containers[0]
    container.text("name", default="")
    if is_program(container):
        _refuse_scaling(its)
        ports = {}
    else:
        ports = _ports(container, what)
    minimum, maximum = _replicas(its)
    image, working_dir = parse_source(container)
    env, secret_env = parse_env(container)
    result = Companion(
        image=image,
        command=parse_words(container, "command"),
        args=parse_words(container, "args"),
        env=env,
        secret_env=secret_env,
        resources=parse_resources(container, gpu_refused=f"{what} computes on CPUs"),
        min_replicas=minimum,
        max_replicas=maximum,
        scale_metric=_metric(its),
        scale_percent=its.number("scaleTarget", minimum=1, maximum=100, default=_DEFAULT_PERCENT),
        http_port=ports.get("http", HTTP_PORT),
        grpc_port=ports.get("grpc", GRPC_PORT),
        working_dir=working_dir,
    )
    its.refuse_unknown(_INSTEAD)
    container.refuse_unknown(_INSTEAD)
    return result


def companion_json(its: Companion | None, kind: CompanionKind) -> dict[str, Any]:
    """Return it as a service file has it, defaults filled in; empty for None."""
    if its is None:
        return {}
    container: dict[str, Any] = {
        "name": kind.value,
        **source_json(its.image, its.working_dir),
        "command": list(its.command),
        "args": list(its.args),
        "env": env_json(its.env, its.secret_env),
    }
    if not its.working_dir:
        container["ports"] = [
            {"name": "http", "containerPort": its.http_port},
            {"name": "grpc", "containerPort": its.grpc_port},
        ]
    if resources := resources_json(its.resources):
        container["resources"] = resources
    if its.working_dir:
        return {"containers": [container]}
    return {
        "minReplicas": its.min_replicas,
        "maxReplicas": its.max_replicas,
        "scaleMetric": its.scale_metric.value,
        "scaleTarget": its.scale_percent,
        "containers": [container],
    }


def stored_companion(value: Mapping[str, Any], kind: CompanionKind) -> Companion | None:
    """Return the companion from the JSON of `companion_json`."""
    return parse_companion(Document({kind.value: value}, "spec"), kind, "") if value else None


def _replicas(its: Document) -> tuple[int, int]:
    minimum = its.integer("minReplicas", minimum=1, maximum=MAX_REPLICAS, default=1)
    maximum = its.integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS, default=minimum)
    if maximum < minimum and its.is_sound("minReplicas"):
        its.fault("maxReplicas", f"is {maximum}, less than minReplicas, which is {minimum}")
    return minimum, maximum


def _refuse_scaling(its: Document) -> None:
    """Report fields of replicas of a program: each replica of its predictor has its own."""
    for name in ("minReplicas", "maxReplicas", "scaleMetric", "scaleTarget"):
        found = its.raw(name, None)
        if found is not None and not (name.endswith("Replicas") and found == 1):
            what = "cannot be honoured with workingDir: each replica of the predictor has its own; leave it out"
            its.fault(name, what)


def _metric(companion: Document) -> CompanionMetric:
    found = companion.raw("scaleMetric", None)
    if found in ("concurrency", "rps"):
        what = f"is {found!r}, which is counted of predictors alone; use cpu or memory"
        companion.fault("scaleMetric", what)
        return CompanionMetric.CPU
    return companion.choice("scaleMetric", CompanionMetric, CompanionMetric.CPU)


def _ports(container: Document, what: str) -> dict[str, int]:
    """Return the ports for HTTP and for gRPC that are named; one without a name is HTTP's."""
    ports: dict[str, int] = {}
    for port in container.documents("ports") if container.raw("ports", None) is not None else []:
        name = port.text("name", default="http")
        kind = _PORTS.get(name)
        if kind is None or kind in ports:
            port.fault("name", f"is {name[:60]!r}; {what} has one port http or http1, one grpc or h2c")
            kind = "http"
        ports[kind] = port.integer("containerPort", minimum=1024, maximum=65535)
        if port.text("protocol", default="TCP") != "TCP":
            port.fault("protocol", "has to be TCP")
        port.refuse_unknown()
    return ports
