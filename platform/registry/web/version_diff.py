"""Version diff: tensors, facts and measurements of two versions of a model. Pure but for the rows it reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import InvalidInput
from registry.domain import contract
from registry.domain.lineage import Lineage
from registry.domain.signature import Signature, Tensor, parse
from registry.models import ModelVersion
from registry.web.latency_plot import Drawing, Measured, drawing, measured


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of both versions; None where one lacks it."""

    name: str
    before: str | None
    after: str | None

    @property
    def is_same(self) -> bool:
        """Return whether both have the same value."""
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class Latency:
    """A batch size that was measured of both or one."""

    batch_size: int
    before: Measured | None
    after: Measured | None

    @property
    def change_percent(self) -> float | None:
        """Return the relative change of the median; None where one is missing."""
        if self.before is None or self.after is None or not self.before.p50_us:
            return None
        return 100 * (self.after.p50_us / self.before.p50_us - 1)


@dataclass(frozen=True, slots=True)
class Beside:
    """Differences and equal facts.

    Attributes:
        contract: effects on clients of the first version; None where a signature is not known.
    """

    tensors: tuple[Fact, ...]
    facts: tuple[Fact, ...]
    latencies: tuple[Latency, ...]
    drawing: Drawing | None
    contract: contract.Comparison | None

    @property
    def differing(self) -> tuple[Fact, ...]:
        """Return the facts that differ."""
        return tuple(fact for fact in self.facts if not fact.is_same)

    @property
    def same(self) -> tuple[Fact, ...]:
        """Return the equal facts."""
        return tuple(fact for fact in self.facts if fact.is_same)


def beside(old: ModelVersion, new: ModelVersion) -> Beside:
    """Return the comparison of `new` with `old`."""
    was, becomes = _signature(old), _signature(new)
    before, after = (measured(version.profile) for version in (old, new))
    by_size = [{each.batch_size: each for each in rows} for rows in (before, after)]
    return Beside(
        tensors=_facts(_tensors(was), _tensors(becomes)),
        facts=_facts(_facts_of_version(old), _facts_of_version(new)),
        latencies=tuple(
            Latency(size, *(rows.get(size) for rows in by_size)) for size in sorted({*by_size[0], *by_size[1]})
        ),
        drawing=drawing([(f"version {old.number}", before), (f"version {new.number}", after)]),
        contract=contract.compare(was, becomes) if was and becomes else None,
    )


def _signature(version: ModelVersion) -> Signature | None:
    try:
        return parse(version.signature)
    except InvalidInput:
        return None  # unknown before the version is READY


def _facts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Fact, ...]:
    return tuple(Fact(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after]))


def _tensors(signature: Signature | None) -> dict[str, str]:
    if signature is None:
        return {}
    sides = (("in", signature.inputs), ("out", signature.outputs))
    return {f"{side}: {tensor.name}": _tensor(tensor) for side, tensors in sides for tensor in tensors}


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.datatype} {list(tensor.shape)}{', optional' if tensor.optional else ''}"


def _facts_of_version(version: ModelVersion) -> dict[str, str]:
    """Return a version's metadata by display names; missing parts are left out."""
    lineage = {**Lineage().as_json(), **version.lineage}
    parameters = lineage.pop("parameters")
    said = {
        "Status": version.status,
        "Platform": version.platform,
        "File": version.source_name,
        "Commit": lineage["source_commit"],
        "CI run": lineage["run_url"],
        "Data": lineage["data_reference"],
        "Imported from": lineage["source_uri"],
        "Built from": lineage["built_from"],
        "Built on": lineage["accelerator"],
        "Registered by": version.created_by,
        "Description": version.description,
        **{f"Parameter {name}": value for name, value in sorted(dict(parameters).items())},
        **{f"Tag {name}": value or "set" for name, value in sorted(version.tags.items())},
    }
    return {name: str(value) for name, value in said.items() if value}
