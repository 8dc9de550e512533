"""Transformer of a service file (KServe's `spec.transformer`): one container in front of the predictor. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clusters.domain.resources import parse_resources, resources_json
from common.files.document import Document
from deployments.domain.service_file.containers import check_image, parse_words
from deployments.domain.service_file.scaling import MAX_REPLICAS
from deployments.domain.service_file.variables import env_json, parse_env
from integrations.clusters.base import Resources, SecretKeyRef

FIELD = "spec.transformer"
IMAGE = f"{FIELD}.containers[0].image"
# A revision's name and `-transformer` have to be a DNS label together.
LONGEST_NAME = 63 - len("-00001-transformer")
HTTP_PORT, GRPC_PORT = 8080, 8081  # KServe's ModelServer
_DEFAULT_PERCENT = 80.0  # KServe's default target of CPU
_PORTS = {"http": "http", "http1": "http", "grpc": "grpc", "h2c": "grpc"}
_INSTEAD = {
    "serviceAccountName": "pods of a service have its own account, which may do nothing",
    "volumeMounts": "a transformer has /tmp to write to and nothing else",
    "securityContext": "pods satisfy the Pod Security Standard restricted; patch them where that has to be otherwise",
}


class TransformerMetric(StrEnum):
    """The scaling metric of a transformer: the share used of what it requests."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Transformer:
    """The transformer of a service.

    Attributes:
        command, args: instead of the image's own; empty keeps those.
        secret_env: variables whose values are in secrets.
        scale_percent: how much of the requested CPU or memory a replica should use.
        http_port, grpc_port: its ports for V2 requests.
    """

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    min_replicas: int = 1
    max_replicas: int = 1
    scale_metric: TransformerMetric = TransformerMetric.CPU
    scale_percent: float = _DEFAULT_PERCENT
    http_port: int = HTTP_PORT
    grpc_port: int = GRPC_PORT

    @property
    def is_automatic(self) -> bool:
        """Return whether its number of replicas follows the load."""
        return self.min_replicas < self.max_replicas

    def within(self, replicas: int) -> int:
        """Return the nearest allowed number of replicas."""
        return max(self.min_replicas, min(self.max_replicas, replicas))


def parse_transformer(spec: Document, service: str) -> Transformer | None:
    """Return the `spec.transformer`; None without it."""
    transformer = spec.optional("transformer")
    if transformer is None:
        return None
    if len(service) > LONGEST_NAME:
        spec.fault(
            "transformer",
            f"cannot be honoured for a service whose name has {len(service)} characters; with a transformer it may "
            f"have {LONGEST_NAME}",
        )
    minimum = transformer.integer("minReplicas", minimum=1, maximum=MAX_REPLICAS, default=1)
    maximum = transformer.integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS, default=minimum)
    if maximum < minimum and transformer.is_sound("minReplicas"):
        transformer.fault("maxReplicas", f"is {maximum}, less than minReplicas, which is {minimum}")
    containers = transformer.documents("containers")
    if len(containers) != 1:
        transformer.fault("containers", f"has {len(containers)} entries; a transformer is one container")
        containers = [transformer.or_empty("no container")]
    container = containers[0]
    container.text("name", default="")
    ports = _ports(container)
    env, secret_env = parse_env(container)
    result = Transformer(
        image=container.text("image", check=check_image),
        command=parse_words(container, "command"),
        args=parse_words(container, "args"),
        env=env,
        secret_env=secret_env,
        resources=parse_resources(container, gpu_refused="a transformer computes on CPUs"),
        min_replicas=minimum,
        max_replicas=maximum,
        scale_metric=_metric(transformer),
        scale_percent=transformer.number("scaleTarget", minimum=1, maximum=100, default=_DEFAULT_PERCENT),
        http_port=ports.get("http", HTTP_PORT),
        grpc_port=ports.get("grpc", GRPC_PORT),
    )
    transformer.refuse_unknown(_INSTEAD)
    container.refuse_unknown(_INSTEAD)
    return result


def transformer_json(transformer: Transformer | None) -> dict[str, Any]:
    """Return it as a service file has it, defaults filled in; empty for None."""
    if transformer is None:
        return {}
    container: dict[str, Any] = {
        "name": "transformer",
        "image": transformer.image,
        "command": list(transformer.command),
        "args": list(transformer.args),
        "env": env_json(transformer.env, transformer.secret_env),
        "ports": [
            {"name": "http", "containerPort": transformer.http_port},
            {"name": "grpc", "containerPort": transformer.grpc_port},
        ],
    }
    if resources := resources_json(transformer.resources):
        container["resources"] = resources
    return {
        "minReplicas": transformer.min_replicas,
        "maxReplicas": transformer.max_replicas,
        "scaleMetric": transformer.scale_metric.value,
        "scaleTarget": transformer.scale_percent,
        "containers": [container],
    }


def stored_transformer(value: Mapping[str, Any]) -> Transformer | None:
    """Return the transformer from the JSON of `transformer_json`."""
    return parse_transformer(Document({"transformer": value}, "spec"), "") if value else None


def _metric(transformer: Document) -> TransformerMetric:
    found = transformer.raw("scaleMetric", None)
    if found in ("concurrency", "rps"):
        what = f"is {found!r}, which is counted of predictors alone; use cpu or memory"
        transformer.fault("scaleMetric", what)
        return TransformerMetric.CPU
    return transformer.choice("scaleMetric", TransformerMetric, TransformerMetric.CPU)


def _ports(container: Document) -> dict[str, int]:
    """Return the ports for HTTP and for gRPC that are named; one without a name is HTTP's."""
    ports: dict[str, int] = {}
    for port in container.documents("ports") if container.raw("ports", None) is not None else []:
        name = port.text("name", default="http")
        kind = _PORTS.get(name)
        if kind is None or kind in ports:
            port.fault("name", f"is {name[:60]!r}; a transformer has one port http or http1, one grpc or h2c")
            kind = "http"
        ports[kind] = port.integer("containerPort", minimum=1024, maximum=65535)
        if port.text("protocol", default="TCP") != "TCP":
            port.fault("protocol", "has to be TCP")
        port.refuse_unknown()
    return ports
