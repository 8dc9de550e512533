"""GPU inventory of nodes whose GPUs are claimed: from ResourceSlices and the allocations of ResourceClaims. Pure.

Sources: Kubernetes, `resource.k8s.io/v1` (pools and their generations, shared counters of partitionable devices, taints
of devices); NVIDIA's DRA driver for GPUs (`gpu-0`, `gpu-0-mig-1g10gb-19-0` and their attributes; a counter set a GPU).

Devices count under the extended resource that a service file names (`nvidia.com/mig-1g.10gb`). Where the driver cuts
GPUs as pods claim slices, a GPU publishes each slice that it could have, and all of them consume its counters: what is
free of a kind is how many more of that kind alone could be allocated.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.clusters.base import CUT_BY_CLAIMS, SLICE, WHOLE, GpuPod, NodeGpus
from integrations.clusters.kubernetes.manifests.names import REVISION, SERVICE
from integrations.clusters.kubernetes.manifests.workloads.claims import DRIVER
from integrations.clusters.kubernetes.observe.gpus import closed
from integrations.clusters.kubernetes.observe.nodes import quantity

Json = Mapping[str, Any]
_WHOLE_GPUS, _CUT_AHEAD = "none", "static"
_UNUSABLE = ("NoSchedule", "NoExecute")
_MIB = 1 << 20
_Id = tuple[str, str]
"""A device by its pool and its name."""
_CounterId = tuple[str, str, str]
"""A counter by its pool, its counter set and its name."""


@dataclass(frozen=True, slots=True)
class _Device:
    """A device that a replica can claim.

    Attributes:
        board: the UUID of the GPU that it is, or is a slice of.
        consumes: what it takes of the counters that it shares with other devices.
    """

    id: _Id
    node: str
    resource: str
    product: str
    board: str
    memory_bytes: float
    consumes: Mapping[_CounterId, float]
    is_usable: bool


def gpus(
    nodes: Sequence[Json], pods: Sequence[Json], slices: Sequence[Json], claims: Sequence[Json]
) -> tuple[NodeGpus, ...]:
    """Return the GPUs of each node with devices of the driver, by its name.

    On a node with several products those of the most common one count.
    """
    current = list(_current(slices))
    counters = dict(_counters(current))
    devices = [each for one in current for each in _devices(one["spec"])]
    holders = _holders(pods, claims)
    by_name = {str(each["metadata"]["name"]): each for each in nodes}
    on_node: dict[str, list[_Device]] = defaultdict(list)
    for device in devices:
        on_node[device.node].append(device)
    left = _left(counters, (device for device in devices if device.id in holders))
    return tuple(_node(by_name[name], on_node[name], holders, left) for name in sorted(on_node.keys() & by_name.keys()))


def _node(
    node: Json, there: Sequence[_Device], holders: Mapping[_Id, Json], left: Mapping[_CounterId, float]
) -> NodeGpus:
    product = min(Counter(each.product for each in there).items(), key=lambda one: (-one[1], one[0]))[0]
    own = [each for each in there if each.product == product]
    held = [each for each in own if each.id in holders]
    taken = Counter(each.resource for each in held)
    resources = {
        name: taken[name] + _free(name, own, holders, left) for name in sorted({each.resource for each in own})
    }
    whole = [each.memory_bytes for each in own if each.resource == WHOLE]
    return NodeGpus(
        node=str(node["metadata"]["name"]),
        product=product,
        memory_mib=int(max(whole, default=0.0) // _MIB),
        count=len({each.board for each in own}),
        strategy=_strategy(own),
        config="",
        config_state="",
        resources=resources,
        pods=tuple(sorted((_pod(each, holders[each.id]) for each in held), key=lambda pod: (pod.name, pod.resource))),
        closed=closed(node),
    )


def _strategy(own: Iterable[_Device]) -> str:
    slices = [each for each in own if each.resource != WHOLE]
    if any(each.consumes for each in slices):
        return CUT_BY_CLAIMS
    return _CUT_AHEAD if slices else _WHOLE_GPUS


def _free(resource: str, own: Iterable[_Device], holders: Mapping[_Id, Json], left: Mapping[_CounterId, float]) -> int:
    """Return how many more devices of a kind could be allocated if no other kind was, in the order of the pool."""
    rest, count = dict(left), 0
    for each in own:
        if each.resource != resource or each.id in holders or not each.is_usable:
            continue
        if all(rest.get(counter, 0.0) >= amount for counter, amount in each.consumes.items()):
            count += 1
            for counter, amount in each.consumes.items():
                rest[counter] -= amount
    return count


def _left(counters: Mapping[_CounterId, float], held: Iterable[_Device]) -> dict[_CounterId, float]:
    """Return what allocated devices leave of the counters."""
    rest = dict(counters)
    for device in held:
        for counter, amount in device.consumes.items():
            rest[counter] = rest.get(counter, 0.0) - amount
    return rest


def _current(slices: Iterable[Json]) -> Iterator[Json]:
    """Yield the driver's slices of complete pools, in their newest generation, in the order in which it names devices.

    Kubernetes allocates nothing of a pool of which slices are still to come.
    """
    pools: dict[str, list[Json]] = defaultdict(list)
    for each in slices:
        if each["spec"]["driver"] == DRIVER and each["spec"].get("nodeName"):
            pools[each["spec"]["pool"]["name"]].append(each)
    for _, there in sorted(pools.items()):
        newest = max(each["spec"]["pool"]["generation"] for each in there)
        found = [each for each in there if each["spec"]["pool"]["generation"] == newest]
        if len(found) == found[0]["spec"]["pool"]["resourceSliceCount"]:
            yield from sorted(found, key=lambda each: str(each["metadata"]["name"]))


def _counters(slices: Iterable[Json]) -> Iterator[tuple[_CounterId, float]]:
    for each in slices:
        pool = each["spec"]["pool"]["name"]
        for shared in each["spec"].get("sharedCounters") or ():
            for name, counter in shared["counters"].items():
                yield (pool, shared["name"], name), quantity(counter["value"])


def _devices(spec: Json) -> Iterator[_Device]:
    pool = spec["pool"]["name"]
    for each in spec.get("devices") or ():
        resource = _resource(each)
        if not resource:
            continue
        consumes = {
            (pool, one["counterSet"], name): quantity(counter["value"])
            for one in each.get("consumesCounters") or ()
            for name, counter in one["counters"].items()
        }
        yield _Device(
            id=(pool, each["name"]),
            node=spec["nodeName"],
            resource=resource,
            product=_text(each, "productName").replace(" ", "-"),
            board=_text(each, "uuid" if resource == WHOLE else "parentUUID"),
            memory_bytes=quantity((_named(each.get("capacity"), "memory") or {"value": "0"})["value"]),
            consumes=consumes,
            is_usable=not any(taint["effect"] in _UNUSABLE for taint in each.get("taints") or ()),
        )


def _resource(device: Json) -> str:
    """Return the extended resource of a device, as service files name it; empty for others than GPUs and slices."""
    kind, profile = _text(device, "type"), _text(device, "profile")
    if kind == "mig" and profile:
        return f"{SLICE}{profile.replace('+', '.')}"
    return WHOLE if kind == "gpu" else ""


def _text(device: Json, name: str) -> str:
    return str((_named(device.get("attributes"), name) or {}).get("string", ""))


def _named(values: Json | None, name: str) -> Json | None:
    """Return a value by its name, which may have the driver's domain."""
    found: Json | None = (values or {}).get(name) or (values or {}).get(f"{DRIVER}/{name}")
    return found


def _holders(pods: Iterable[Json], claims: Iterable[Json]) -> dict[_Id, Json]:
    """Return the pod of each allocated device, or the claim where no pod of it is there."""
    by_name = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in pods}
    found = {}
    for claim in claims:
        status, namespace = claim.get("status") or {}, claim["metadata"]["namespace"]
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        users = [each["name"] for each in status.get("reservedFor") or () if each.get("resource") == "pods"]
        owners = claim["metadata"].get("ownerReferences") or ()
        users += [each["name"] for each in owners if each["kind"] == "Pod"]
        holder = next((by_name[namespace, name] for name in users if (namespace, name) in by_name), claim)
        for each in results:
            if each["driver"] == DRIVER and not each.get("adminAccess"):
                found[each["pool"], each["device"]] = holder
    return found


def _pod(device: _Device, holder: Json) -> GpuPod:
    metadata = holder["metadata"]
    labels = metadata.get("labels") or {}
    service, namespace = labels.get(SERVICE, ""), metadata["namespace"]
    named = f"{namespace}/{service}" if service else ""
    revision = labels.get(REVISION, "") if named else ""
    return GpuPod(f"{namespace}/{metadata['name']}", named, device.resource, 1, revision)
