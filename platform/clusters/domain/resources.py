"""Resource requests of a replica. Pure."""

from collections.abc import Sequence
from decimal import Decimal

from common.files.document import Document
from common.files.quantities import CPU_UNITS, parse_memory, parse_quantity
from integrations.clusters.base import WHOLE, Resources, is_accelerator

AUTO = "auto"
"""Value of `Resources.accelerator` that leaves the GPU or slice to the platform."""
_INSTEAD = {
    "memory": "what a replica requests is its limit, too: write memory under requests",
    "ephemeral-storage": "models lie on volumes of their own",
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
        limits.raw("cpu", None)  # read as a field of the pod
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
    return float(parse_quantity(value, CPU_UNITS, field, "500m or 2"))


def resources_json(resources: Resources) -> dict[str, dict[str, str]]:
    """Return resources as a service file has them; empty without any."""
    cpu = {} if resources.cpu_cores is None else {"cpu": f"{Decimal(str(resources.cpu_cores)):f}"}
    memory = {} if resources.memory_bytes is None else {"memory": str(resources.memory_bytes)}
    requests = cpu | memory
    accelerator = resources.accelerator
    limits = {WHOLE: AUTO} if accelerator == AUTO else {accelerator: "1"} if accelerator else {}
    return {name: said for name, said in (("requests", requests), ("limits", limits)) if said}


def limit_of(resources: Resources) -> str:
    """Return the field of a service file that requests a GPU."""
    name = WHOLE if resources.accelerator == AUTO else resources.accelerator
    return f"spec.predictor.model.resources.limits.{name}"


def _parse_accelerator(limits: Document, asked: Sequence[str]) -> str:
    """Return the GPU, or slice of one, of a replica; empty for none."""
    if not asked:
        return ""
    for name in asked:
        limits.raw(name, None)
    if len(asked) > 1:
        found = " and ".join(asked)
        limits.fault(asked[0], f"is not the only GPU requested; a process sees one GPU or slice, here are {found}")
    elif not is_accelerator(asked[0]):
        limits.fault(
            asked[0], "is no GPU known here; expected nvidia.com/gpu or a MIG slice such as nvidia.com/mig-1g.10gb"
        )
    if asked[0] == WHOLE and limits.raw(WHOLE, "") == AUTO:
        return AUTO
    if str(limits.raw(asked[0], "")) != "1":
        shown = str(limits.raw(asked[0], ""))[:20]
        limits.fault(
            asked[0], f"is {shown}; a replica has one (or {WHOLE}: auto), and minReplicas says how many there are"
        )
    return asked[0]
