"""Repartition proposal: the pods that find no MIG slice, and the MIG layout of a node that would place most of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.models import Cluster
from common.errors import Conflict, InvalidInput
from deployments.domain.service_file import ServiceSpec, parse_service
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from deployments.services.revisions.gpu_assignment import room_of
from deployments.services.rollout.rollouts import version_of
from deployments.services.services import service_named, spec_of
from integrations.clusters.base import NodeGpus
from placement.packing.assignment import NoRoom
from placement.repartition.proposal import Repartition, repartition
from placement.slices.demand import parse_wanted, unserved
from placement.slices.offers import mig_nodes
from placement.slices.slice_types import Demand
from registry.selectors import model_version_resolve

_MOST = 20


@dataclass(frozen=True)
class RepartitionOrder:
    """Demand for which a layout is searched, given in one of three ways.

    Attributes:
        demands: slices, such as `2 x 3g.40gb` or `1 x 30Gi`.
        service: NAMESPACE/NAME of a service, for a rollout of it to `version` (`2`, `@alias` or `models:/NAME/2`).
        file: a service file that was refused.
    """

    demands: tuple[str, ...] = ()
    service: str = ""
    version: str = ""
    file: object = None


@dataclass(frozen=True, slots=True)
class Lack:
    """Unplaced demand.

    Attributes:
        wanted: in words.
        plan: the layout that places the most of it.
    """

    wanted: str
    missing: tuple[Demand, ...]
    plan: Repartition


@dataclass(frozen=True, slots=True)
class _Asked:
    """Desired service, and its stable revision; None where it is new."""

    service: InferenceService
    spec: ServiceSpec
    uri: str
    stable: Revision | None


def lack_of(*, cluster: Cluster, order: RepartitionOrder, nodes: Sequence[NodeGpus]) -> Lack:
    """Return the unplaced part of the demand and the layout that places the most of it.

    Raises:
        InvalidInput: the demand is given in none of the ways, in several, or wrongly.
        NotFound: no such service or version.
        Conflict: it fits without a change, or no layout places any of it.
    """
    if sum(map(bool, (order.demands, order.service, order.file))) != 1:
        raise InvalidInput("say for what: one of demands, service and file, and no two of them", field="demands")
    if order.demands:
        return _of_slices(order.demands, nodes)
    asked = _by_name(order.service, order.version) if order.service else _by_file(cluster, order.file)
    return _of_service(cluster, asked, nodes)


def _of_slices(texts: Sequence[str], nodes: Sequence[NodeGpus]) -> Lack:
    if len(texts) > _MOST:
        raise InvalidInput(f"demands has {len(texts)} entries; expected at most {_MOST}", field="demands")
    wanted = [parse_wanted(text, f"demands[{index}]") for index, text in enumerate(texts)]
    if len({each.name for each in wanted}) < len(wanted):
        raise InvalidInput("demands says the same twice; say it once, with all that are needed", field="demands")
    words = " and ".join(each.name for each in wanted)
    missing, there = unserved(wanted, mig_nodes(nodes))
    if not missing:
        raise Conflict(f"{words}: there are free slices for all of it as the nodes are cut, so nothing is to be done")
    plan = repartition(missing, there)
    if plan is None:
        lacking = " and ".join(f"{each.replicas} of {each.name}" for each in missing)
        raise Conflict(f"no cut of one node makes slices for {lacking}, with all that would have to leave it served")
    return Lack(words, tuple(missing), plan)


def _by_name(name: str, version: str) -> _Asked:
    namespace, _, short = name.rpartition("/")
    service = service_named(namespace or "default", short)
    stable = Revision.objects.select_related("model_version").filter(service=service, role=Role.STABLE).first()
    if stable is None:
        raise Conflict(f"service {service} does not serve yet; give its file")
    uri = version_of(stable.model_version, version).uri if version else stable.model_version.uri
    return _Asked(service, spec_of(service), uri, stable)


def _by_file(cluster: Cluster, document: object) -> _Asked:
    spec = parse_service(document, namespace=None, name=None)
    if spec.custom is not None:
        raise InvalidInput(
            "file has a custom predictor, whose GPU is named by itself; name a service of it", field="file"
        )
    if spec.model_pool is not None or spec.pool:
        raise InvalidInput("file has a model pool, whose replicas run on CPUs; name a service with a GPU", field="file")
    if spec.is_imported:
        raise InvalidInput("file names a model that is no version yet; let it name models:/NAME/VERSION", field="file")
    named = InferenceService.objects.filter(namespace=spec.namespace, name=spec.name)
    service = named.first() or InferenceService(namespace=spec.namespace, name=spec.name, cluster=cluster)
    stable = Revision.objects.filter(service=service, role=Role.STABLE).first() if service.pk else None
    return _Asked(service, spec, spec.storage_uri, stable)


def _of_service(cluster: Cluster, asked: _Asked, nodes: Sequence[NodeGpus]) -> Lack:
    service, spec, stable = asked.service, asked.spec, asked.stable
    if service.cluster != cluster:
        raise Conflict(f"service {service} runs on cluster {service.cluster}, so its nodes are to be looked at")
    if not spec.resources.accelerator:
        raise Conflict(f"service {service} asks for no GPU, so no cut of one makes room for it")
    version = model_version_resolve(uri=asked.uri)
    replicas = spec.scaling.within(stable.replicas) if stable is not None else spec.scaling.least
    found = room_of(service, spec, version, replicas, nodes)
    if not isinstance(found, NoRoom):
        raise Conflict(f"service {service} has room for {version} as the nodes are cut: {found.why}")
    if found.plan is None:
        raise Conflict(f"no cut of one node makes room for {version} of service {service}: {found.why}")
    return Lack(f"{version} of service {service}", found.missing, found.plan)
