"""Kubernetes quantities, and what a replica asks for. Pure."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from common.errors import InvalidInput
from deployments.document import Document
from integrations.clusters.base import Resources

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
_CPU_UNITS = {"": Decimal(1), "m": Decimal("0.001")}
_MEMORY_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)
}


def parse_resources(model: Document) -> Resources:
    resources = model.optional("resources")
    if resources is None:
        return Resources()
    requests = resources.optional("requests") or Document({}, resources.path("requests"))
    cpu, memory = requests.raw("cpu", None), requests.raw("memory", None)
    result = Resources(
        cpu_cores=None if cpu is None else float(parse_quantity(cpu, _CPU_UNITS, requests.path("cpu"), "500m or 2")),
        memory_bytes=None if memory is None else parse_memory(memory, requests.path("memory")),
    )
    requests.refuse_unknown()
    resources.refuse_unknown()
    return result


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


def requests_of(resources: Resources) -> dict[str, str]:
    cpu = {} if resources.cpu_cores is None else {"cpu": f"{Decimal(str(resources.cpu_cores)):f}"}
    memory = {} if resources.memory_bytes is None else {"memory": str(resources.memory_bytes)}
    return cpu | memory
