"""Cluster-specific fields of a service file: which kinds of clusters can honour them. Pure."""

from clusters.domain.resources import limit_of
from common.errors import InvalidInput
from common.files.document import Document
from deployments.domain.service_file import access
from deployments.domain.service_file.companion import Companion, container_field
from deployments.domain.service_file.placement import PLACEMENT
from deployments.domain.service_file.pods import pod_field_of
from deployments.domain.service_file.pools import EVERYBODY, MODEL_POOL
from deployments.domain.service_file.predictor import CONTAINER, CustomPredictor
from deployments.domain.service_file.values import PlacementPreference, ServiceSpec
from integrations.clusters.base import DriftPolicy

LOCAL = "local"


def parse_drift(spec: Document) -> DriftPolicy | None:
    """Return the policy of `spec.drift`; None without one."""
    return spec.choice("drift", DriftPolicy, DriftPolicy.HEAL) if spec.raw("drift", None) is not None else None


def containers_of(spec: ServiceSpec) -> dict[str, Companion | CustomPredictor]:
    """Return the containers of the deployer's own, by their fields."""
    found: dict[str, Companion | CustomPredictor] = {} if spec.custom is None else {CONTAINER: spec.custom}
    return found | {container_field(kind): its for kind, its in spec.companions.items()}


def refuse_on(kind: str, spec: ServiceSpec) -> None:
    """Raise InvalidInput, naming the field, where a cluster of that kind cannot honour the file."""
    if kind != LOCAL and spec.access is not None and spec.access.callers is not None and spec.access.callers.subjects:
        raise InvalidInput(
            f"{access.FIELD}.subjects cannot be honoured on Kubernetes yet: gateways there accept keys only; name "
            "teams, users or keys",
            field=f"{access.FIELD}.subjects",
        )
    _refuse_container(kind, spec)
    if kind != LOCAL and spec.model_pool is not None and EVERYBODY in spec.model_pool.shared_with:
        raise InvalidInput(
            f"{MODEL_POOL}.sharedWith has *, and on Kubernetes a pool is shared with namespaces by name; name those "
            "whose services may be in it",
            field=f"{MODEL_POOL}.sharedWith",
        )
    if kind == LOCAL and spec.patches:
        raise InvalidInput(
            "spec.patches are for services on Kubernetes: the local cluster has no objects to patch; leave them out",
            field="spec.patches",
        )
    if kind == LOCAL and spec.drift is not None:
        raise InvalidInput(
            "spec.drift is for services on Kubernetes: only Fairlead changes what the local cluster runs; leave it out",
            field="spec.drift",
        )
    if kind == LOCAL and spec.resources.accelerator:
        field = limit_of(spec.resources)
        raise InvalidInput(
            f"{field} is for services on Kubernetes: the local cluster runs models on this machine's CPUs; leave it "
            "out, or choose a Kubernetes cluster with GPU nodes",
            field=field,
        )
    if kind == LOCAL and spec.placement != PlacementPreference():
        raise InvalidInput(
            f"{PLACEMENT} is for services on Kubernetes: the local cluster has one machine; leave it out",
            field=PLACEMENT,
        )
    if kind == LOCAL and (field := pod_field_of(spec.pod)):
        raise InvalidInput(
            f"{field} is for services on Kubernetes: the local cluster runs processes and no pods; leave it out",
            field=field,
        )
    if kind == LOCAL and spec.rolling is not None:
        raise InvalidInput(
            "spec.predictor.deploymentStrategy is for services on Kubernetes: the local cluster replaces one replica "
            "after the other; leave it out",
            field="spec.predictor.deploymentStrategy",
        )
    if kind == LOCAL and spec.scaling.is_measured_by_cluster:
        raise InvalidInput(
            f"spec.predictor.scaleMetric is {spec.scaling.metric}, which the local cluster does not measure; use "
            "concurrency, rps or avg_time_queue_ms there",
            field="spec.predictor.scaleMetric",
        )


def _refuse_container(kind: str, spec: ServiceSpec) -> None:
    """Raise InvalidInput for an image on the local cluster, and for a program elsewhere."""
    for container, its in containers_of(spec).items():
        if kind == LOCAL and not its.working_dir:
            raise InvalidInput(
                f"{container}.image cannot be honoured on the local cluster, which runs programs and no images; name "
                "the folder of a program in workingDir and its command, or choose a Kubernetes cluster",
                field=f"{container}.image",
            )
        if kind != LOCAL and its.working_dir:
            raise InvalidInput(
                f"{container}.workingDir is for services on the local cluster: pods run images; name one in image",
                field=f"{container}.workingDir",
            )
