"""Resource requests of a replica, and Kubernetes quantities. Pure."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from common.document import Document
from common.errors import InvalidInput
from integrations.clusters.base import Resources

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
_ACCELERATOR = re.compile(r"nvidia\.com/(gpu|mig-\d+g\.\d+gb)(\.shared)?")
GPU = "nvidia.com/gpu"
AUTO = "auto"
"""Value of `Resources.accelerator` that leaves the GPU or slice to the platform."""
_CPU_UNITS = {"": Decimal(1), "m": Decimal("0.001")}
_INSTEAD = {
    "cpu": "a replica is never throttled: write cpu under requests",
    "memory": "what a replica requests is its limit, too: write memory under requests",
    "ephemeral-storage": "models lie on volumes of their own",
}
_MEMORY_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)
}


def parse_resources(model: Document, *, gpu_refused: str = "") -> Resources:
    """Return the `resources` of a model.

    Args:
        gpu_refused: why no GPU may be requested, and so no limit, as the end of a sentence; empty where one may.
    """
    resources = model.optional("resources")
    if resources is None:
        return Resources()
    requests = resources.or_empty("requests")
    cpu, memory = requests.raw("cpu", None), requests.raw("memory", None)
    if gpu_refused:
        limits, named = Document({}), []
    else:
        limits = resources.or_empty("limits")
        named = [str(name) for name in limits.names if str(name).startswith("nvidia.com/")]
    result = Resources(
        cpu_cores=None if cpu is None else requests.attempt(None, _parse_cores, cpu, requests.path("cpu")),
        memory_bytes=None if memory is None else requests.attempt(None, parse_memory, memory, requests.path("memory")),
        accelerator=_parse_accelerator(limits, named),
    )
    requests.refuse_unknown(_INSTEAD)
    limits.refuse_unknown(_INSTEAD)
    resources.refuse_unknown({"limits": gpu_refused} if gpu_refused else {})
    return result


def _parse_cores(value: object, field: str) -> float:
    return float(parse_quantity(value, _CPU_UNITS, field, "500m or 2"))


def parse_memory(value: object, field: str) -> int:
    """Return a quantity of memory such as `512Mi` in bytes."""
    return int(parse_quantity(value, _MEMORY_UNITS, field, "512Mi"))


def parse_quantity(value: object, units: Mapping[str, Decimal | int], field: str, example: str) -> Decimal:
    """Return a Kubernetes quantity as a number of its base unit."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    try:
        amount = Decimal(match[1]) * units[match[2]] if match else Decimal(0)
    except (KeyError, InvalidOperation):
        amount = Decimal(0)
    if isinstance(value, bool) or not 0 < amount < 2**60:
        raise InvalidInput(f"{field} is {str(value)[:60]!r}; expected a quantity such as {example}", field=field)
    return amount


def is_accelerator(name: str) -> bool:
    """Return whether an extended resource is a known GPU, or a slice of one."""
    return _ACCELERATOR.fullmatch(name) is not None


def resources_json(resources: Resources) -> dict[str, dict[str, str]]:
    """Return resources as a service file has them; empty without any."""
    cpu = {} if resources.cpu_cores is None else {"cpu": f"{Decimal(str(resources.cpu_cores)):f}"}
    memory = {} if resources.memory_bytes is None else {"memory": str(resources.memory_bytes)}
    requests = cpu | memory
    accelerator = resources.accelerator
    limits = {GPU: AUTO} if accelerator == AUTO else {accelerator: "1"} if accelerator else {}
    return {name: said for name, said in (("requests", requests), ("limits", limits)) if said}


def limit_of(resources: Resources) -> str:
    """Return the field of a service file that requests a GPU."""
    name = GPU if resources.accelerator == AUTO else resources.accelerator
    return f"spec.predictor.model.resources.limits.{name}"


def _parse_accelerator(limits: Document, asked: Sequence[str]) -> str:
    """Return the GPU, or slice of one, of a replica; empty for none."""
    if not asked:
        return ""
    for name in asked:
        limits.raw(name, None)
    if len(asked) > 1:
        found = " and ".join(asked)
        limits.fault(asked[0], f"is not all that is asked for; a process sees one GPU or slice, here are {found}")
    elif not is_accelerator(asked[0]):
        limits.fault(
            asked[0], "is no GPU known here; expected nvidia.com/gpu or a MIG slice such as nvidia.com/mig-1g.10gb"
        )
    if asked[0] == GPU and limits.raw(GPU, "") == AUTO:
        return AUTO
    if str(limits.raw(asked[0], "")) != "1":
        shown = str(limits.raw(asked[0], ""))[:20]
        limits.fault(
            asked[0], f"is {shown}; a replica has one (or {GPU}: auto), and minReplicas says how many there are"
        )
    return asked[0]
