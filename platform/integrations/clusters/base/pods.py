"""Pod fields of a revision: scheduling, identity, labels and the CPU limit that a service file sets on a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a pod or Job: the LocalQueue of its namespace by which Kueue admits it."""

Toleration = Mapping[str, str | int]
"""As a pod's specification has it: `key`, `operator`, `value`, `effect`, `tolerationSeconds`."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One constraint of Kubernetes' `topologySpreadConstraints`, over the pods of one revision.

    Attributes:
        required: a pod that would exceed `max_skew` stays pending (`DoNotSchedule`).
    """

    topology_key: str
    max_skew: int = 1
    required: bool = False


@dataclass(frozen=True, slots=True)
class PodFields:
    """Fields of the predictor's pods; by default those that the driver renders by itself.

    Attributes:
        labels: of pods, besides the driver's, which win; never part of a selector.
        service_account: empty for the service's own account, which has no rights.
        cpu_limit: in cores; None is never throttled.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    service_account: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    spread: tuple[Spread, ...] = ()
    cpu_limit: float | None = None
