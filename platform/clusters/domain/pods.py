"""`pods` of a cluster file: which pod fields services may set there. Pure.

Without an entry a service gets no service account, priority class, image pull secret, node or toleration. Labels
without a prefix, topology spread and a CPU limit need none: they reach no further than the service's own pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.base import QUEUE, PodFields

PREDICTOR = "spec.predictor"


@dataclass(frozen=True, slots=True)
class AllowedPods:
    """The values that services may set.

    Attributes:
        node_selector: allowed values by key.
        toleration_keys: keys of the taints that services may tolerate.
        label_prefixes: such as `example.com`; labels without a prefix are always allowed.
        queue_names: values of the label of Kueue's queue, from `queueNames` of the cluster file; without any it is a
            label like others.
    """

    service_accounts: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    toleration_keys: tuple[str, ...] = ()
    label_prefixes: tuple[str, ...] = ()
    queue_names: tuple[str, ...] = ()


def parse_pods(document: Document, *, control_plane_url: str) -> AllowedPods:
    """Return the file's `pods`; raises InvalidInput with the name of the field at fault."""
    result = AllowedPods(
        service_accounts=_texts(document, "serviceAccountNames"),
        priority_classes=_texts(document, "priorityClassNames"),
        image_pull_secrets=_texts(document, "imagePullSecrets"),
        node_selector=_node_selector(document),
        toleration_keys=_texts(document, "tolerationKeys"),
        label_prefixes=tuple(each.removesuffix("/") for each in _texts(document, "labelPrefixes")),
    )
    if result.service_accounts and control_plane_url:
        document.fault(
            "serviceAccountNames",
            "cannot be honoured with controlPlaneUrl: pods identify their service to the control plane by its own "
            "account; leave one of them out",
        )
    if any(is_reserved(prefix) for prefix in result.label_prefixes):
        document.fault("labelPrefixes", "has a prefix of Fairlead or Kubernetes, whose labels services never set")
    document.refuse_unknown()
    return result


def is_reserved(prefix: str) -> bool:
    """Return whether the labels with this prefix are those of Fairlead or Kubernetes."""
    own = ("fairlead", "kubernetes.io", "k8s.io")
    return any(prefix == each or prefix.endswith(f".{each}") for each in own)


def check_pod_fields(allowed: AllowedPods, pod: PodFields, cluster: str) -> None:
    """Raise InvalidInput, naming the field, where the cluster's file does not allow what a service sets."""
    _check("serviceAccountName", [pod.service_account], allowed.service_accounts, "serviceAccountNames", cluster)
    _check("priorityClassName", [pod.priority_class], allowed.priority_classes, "priorityClassNames", cluster)
    _check("imagePullSecrets", pod.image_pull_secrets, allowed.image_pull_secrets, "imagePullSecrets", cluster)
    for key, value in pod.node_selector.items():
        _check("nodeSelector", [f"{key}: {value}"], _pairs(allowed, key), "nodeSelector", cluster)
    keys = [str(each["key"]) for each in pod.tolerations]
    _check("tolerations", keys, allowed.toleration_keys, "tolerationKeys", cluster)
    prefixes = [key.rpartition("/")[0] for key in pod.labels if key != QUEUE or not allowed.queue_names]
    _check("labels", prefixes, allowed.label_prefixes, "labelPrefixes", cluster)

    queue = pod.labels.get(QUEUE)
    if queue is not None and allowed.queue_names and queue not in allowed.queue_names:
        raise InvalidInput(
            f"{PREDICTOR}.labels names the queue {queue[:80]!r}, which the file of cluster {cluster} does not list; "
            f"name {' or '.join(allowed.queue_names)}, or have it under queueNames in the cluster's file",
            field=f"{PREDICTOR}.labels",
        )


def _pairs(allowed: AllowedPods, key: str) -> tuple[str, ...]:
    return tuple(f"{key}: {value}" for value in allowed.node_selector.get(key, ()))


def _check(name: str, used: "list[str] | tuple[str, ...]", allowed: tuple[str, ...], entry: str, cluster: str) -> None:
    for each in used:
        if each and each not in allowed:
            raise InvalidInput(
                f"{PREDICTOR}.{name} has {each[:80]!r}, which the file of cluster {cluster} does not allow services; "
                f"leave it out, or have it under pods.{entry} in the cluster's file",
                field=f"{PREDICTOR}.{name}",
            )


def _texts(document: Document, name: str) -> tuple[str, ...]:
    value = document.raw(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        document.fault(name, "is no list of texts")
        return ()
    return tuple(value)


def _node_selector(document: Document) -> dict[str, tuple[str, ...]]:
    values = document.or_empty("nodeSelector")
    return {name: _texts(values, name) for name in values.names}
