"""GPU assignment: gives a new revision its GPU or slice, from the cluster's last inventory; refuses one without room.

Makes no calls to the cluster: the apply and the sweep have read the inventory before (`gpus_look`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from clusters.domain.resources import AUTO
from clusters.models import Cluster
from clusters.services.connection import file_of
from common.errors import Conflict, DoesNotFit, FairleadError
from deployments.domain.service_file import ServiceSpec
from deployments.models import InferenceService, Revision
from integrations.clusters.base import ClusterDriver, GpuPod, NodeGpus, Nodes
from placement.packing.assignment import Chosen, Model, NoRoom, as_named, automatic
from placement.packing.measured_latency import timings
from placement.repartition.machine import Phase
from registry.models import ModelVersion

LOOKS_EVERY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Gpus:
    """Last observed GPUs of a cluster; `unknown` is why they are unknown."""

    nodes: tuple[NodeGpus, ...] = ()
    unknown: str = "its nodes were not looked at yet"


def gpus_look(cluster: Cluster, driver_of: Callable[[Cluster], ClusterDriver], now: datetime) -> None:
    """Read a cluster's GPUs and store them; one that does not answer keeps the former inventory.

    Called with no transaction open.
    """
    try:
        gpus_note(cluster_id=cluster.pk, nodes=driver_of(cluster).inventory(with_nodes=True), now=now)
    except FairleadError:
        return


def gpus_note(*, cluster_id: int, nodes: Nodes, now: datetime) -> None:
    """Store a cluster's GPUs."""
    found = {"nodes": [asdict(each) for each in nodes.gpus], "unknown": nodes.unknown}
    Cluster.objects.filter(pk=cluster_id).update(gpus=found, gpus_at=now)


def gpus_due(cluster: Cluster, now: datetime) -> bool:
    """Return whether a cluster with GPU services or a repartition in progress is due for an inventory.

    The result of a repartition is due at once when it has ended.
    """
    if cluster.gpus_at is not None and now - cluster.gpus_at < LOOKS_EVERY:
        return cluster.repartitions.filter(settled_at__gt=cluster.gpus_at).exists()
    lately = Q(settled_at=None) | Q(settled_at__gte=now - 2 * LOOKS_EVERY)  # so that its end is observed, too
    if cluster.repartitions.filter(lately).exclude(phase=Phase.PROPOSED).exists():
        return True
    return Revision.objects.filter(service__cluster=cluster, stopped_at=None).exclude(accelerator="").exists()


def gpus_of(cluster: Cluster) -> Gpus:
    """Return the last observed GPUs of a cluster."""
    stored = cluster.gpus
    return Gpus(tuple(_node(each) for each in stored["nodes"]), stored["unknown"]) if stored else Gpus()


def placed(
    service: InferenceService, spec: ServiceSpec, version: ModelVersion, replicas: int, *, in_place: bool
) -> dict[str, Any]:
    """Return the GPU request of a new revision, in stored form; empty without a GPU.

    Args:
        replicas: the number that must fit.
        in_place: they replace the service's present ones.

    Raises:
        Conflict: the GPU is left open, and the known data do not suffice to choose one.
        DoesNotFit: there is no room; the message names a repartition that would make some.
    """
    asked = spec.resources.accelerator
    if not asked:
        return {}
    file, found = file_of(service.cluster), gpus_of(service.cluster)
    grows = file is not None and file.gpus_autoscaled
    leaving = str(service) if in_place else ""
    if found.unknown and asked == AUTO:
        raise Conflict(f"which GPU service {service} gets cannot be chosen, for {found.unknown}; name one in its file")
    if found.unknown:
        return _stored(asked, (), f"whether it fits is not known: {found.unknown}")
    choice = room_of(service, spec, version, replicas, found.nodes, leaving=leaving)
    if not isinstance(choice, NoRoom):
        return _stored(choice.accelerator, choice.products, choice.why)
    if asked != AUTO and (spec.stopped or grows):
        return _stored(asked, (), choice.why)
    name = service.cluster.name
    help_ = f"; {choice.plan.why}; {_proposing(name, service, version)}" if choice.plan is not None else ""
    raise DoesNotFit(f"service {service} does not fit on cluster {name}: {choice.why}{help_}")


def room_of(
    service: InferenceService,
    spec: ServiceSpec,
    version: ModelVersion,
    replicas: int,
    nodes: Sequence[NodeGpus],
    *,
    leaving: str = "",
) -> Chosen | NoRoom:
    """Return whether replicas of a service have room on nodes, or a repartition that would make some.

    Args:
        spec: requests a GPU.
        leaving: NAMESPACE/NAME of a service whose pods make room; empty for none.

    Raises:
        Conflict: the GPU is left open, and the version was not measured.
    """
    asked, arrangement = spec.resources.accelerator, spec.placement.replicas
    if asked == AUTO:
        model = _model(service, spec, version)
        return automatic(model, replicas, nodes, leaving=leaving, arrangement=arrangement)
    return as_named(asked, replicas, nodes, leaving=leaving, arrangement=arrangement)


def _proposing(cluster: str, service: InferenceService, version: ModelVersion) -> str:
    """Return the commands that propose the repartition for the refused request."""
    command = f"fairlead clusters repartition {cluster}"
    return f"to propose it: {command} -f FILE (or --service {service} --version {version.number}, for a rollout)"


def _stored(accelerator: str, products: tuple[str, ...], why: str) -> dict[str, Any]:
    return {"accelerator": accelerator, "products": list(products), "why": why}


def _model(service: InferenceService, spec: ServiceSpec, version: ModelVersion) -> Model:
    measured = version.profile.get("memory_bytes")
    if not isinstance(measured, int):
        raise Conflict(
            f"which GPU service {service} gets cannot be chosen, for the memory of {version} was not measured; name "
            "one in its file"
        )
    preference = spec.placement
    return Model(measured, tuple(timings(version.profile)), preference.latency, preference.sharing)


def _node(stored: dict[str, Any]) -> NodeGpus:
    return NodeGpus(**{**stored, "pods": tuple(GpuPod(**pod) for pod in stored["pods"])})
