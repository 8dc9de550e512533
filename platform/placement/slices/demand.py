"""Demand for slices, written `2 x 3g.40gb` or `1 x 30Gi`, and the part of it that nodes cannot serve. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from common.errors import InvalidInput
from common.files.quantities import parse_memory
from integrations.clusters.base import is_profile
from placement.gpu_nodes import MigNode, Tenant
from placement.mig.geometry import GEOMETRIES
from placement.packing.packing import pack
from placement.slices.slice_types import Demand

MOST_REPLICAS = 1000
_WANTED = re.compile(r"(?:(\d{1,4})\s*x\s*)?(\S+)")


def parse_wanted(text: str, field: str) -> Demand:
    """Return a demand: a profile by its name, or the least memory of a slice, and a count.

    Raises:
        InvalidInput: the text is neither.
    """
    found = _WANTED.fullmatch(text.strip())
    replicas = int(found[1] or 1) if found else 0
    if found is None or not 1 <= replicas <= MOST_REPLICAS:
        raise InvalidInput(
            f"{field}: {text[:60]!r} says no slices; write `2 x 3g.40gb` or `1 x 30Gi`, up to {MOST_REPLICAS} of them",
            field=field,
        )
    what = found[2]
    if not is_profile(what):
        return Demand(f"{replicas} x {what}", replicas, parse_memory(what, field))
    if not any(what in geometry.profiles for geometry in GEOMETRIES.values()):
        known = ", ".join(sorted({name for geometry in GEOMETRIES.values() for name in geometry.profiles}))
        raise InvalidInput(f"{field}: no GPU has a MIG profile {what}; known are {known}", field=field)
    return Demand(f"{replicas} x {what}", replicas, 0, profile=what)


def unserved(wanted: Sequence[Demand], nodes: Sequence[MigNode]) -> tuple[list[Demand], tuple[MigNode, ...]]:
    """Return the demands without a slice in the present layouts, and the nodes with the others' slices promised."""
    found = pack(wanted, [room for node in nodes if not node.closed for room in node.rooms()])
    missing = [replace(each, replicas=found.missing[each.name]) for each in wanted if each.name in found.missing]
    demands = {each.name: replace(each, replicas=1) for each in wanted}
    promised: dict[str, list[tuple[str, Demand]]] = {node.name: [] for node in nodes}
    for each in found.placements:
        promised[each.node].append((each.profile, demands[each.demand]))
    return missing, tuple(_promising(node, promised[node.name]) for node in nodes)


def demand_json(demand: Demand) -> dict[str, Any]:
    """Return a demand as JSON for storage."""
    return asdict(demand)


def stored_demand(stored: Mapping[str, Any]) -> Demand:
    """Return a demand from its stored JSON."""
    return Demand(**stored)


def _promising(node: MigNode, coming: Sequence[tuple[str, Demand]]) -> MigNode:
    taken = Counter(node.taken) + Counter(profile for profile, _ in coming)
    return replace(node, taken=dict(taken), tenants=(*node.tenants, *(Tenant("", demand) for _, demand in coming)))
