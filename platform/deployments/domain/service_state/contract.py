"""Service contract with clients: the signature served, with the file's `config` applied. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from registry.domain.contract import Comparison, compare
from registry.domain.signature import Signature, Tensor, parse


@dataclass(frozen=True, slots=True)
class Served:
    """A version as a revision serves it, with the overrides of its Triton ModelConfig."""

    version: str
    signature: Mapping[str, object]
    model_config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Contract:
    """A rollout's changes for clients.

    Attributes:
        breaks, notes: breaking changes, and harmless ones.
        unknown: why nothing could be compared; empty where it was.
        accepted_by, accepted_because: who accepted the breaks, and why; empty without any.
    """

    breaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: str = ""
    accepted_by: str = ""
    accepted_because: str = ""

    def as_json(self) -> dict[str, object]:
        """Return its stored form."""
        return {**asdict(self), "breaks": list(self.breaks), "notes": list(self.notes)}

    @classmethod
    def stored(cls, value: Mapping[str, Any]) -> "Contract":
        """Return the contract from the value of `as_json`; rollouts of an earlier release have none."""
        return cls(**{**value, "breaks": tuple(value.get("breaks", ())), "notes": tuple(value.get("notes", ()))})


def contract_between(live: Served, new: Served) -> Contract:
    """Return the changes for clients of `live` when `new` answers them."""
    for each in (live, new):
        if not each.signature:
            return Contract(unknown=f"the signature of {each.version} is not known, so nothing could be compared")
    found: Comparison = compare(_served(live), _served(new))
    return Contract(found.breaks, found.notes)


def _served(served: Served) -> Signature:
    """Return the signature under the overrides (Triton: model configuration; a field set replaces the model's own).

    A tensor listed in `input` or `output` keeps the fields that are not overridden; tensors not listed are not served.
    """
    signature, config = parse(served.signature), served.model_config
    rows = config.get("max_batch_size")
    if isinstance(rows, int) and rows != signature.max_batch_size:
        # The runtime finds its own size where the file has 0, so the size is unknown here.
        signature = replace(signature, max_batch_size=rows or None)
    return replace(
        signature,
        inputs=_listed(signature.inputs, config.get("input")),
        outputs=_listed(signature.outputs, config.get("output")),
    )


def _listed(tensors: tuple[Tensor, ...], listed: object) -> tuple[Tensor, ...]:
    if not isinstance(listed, list) or not listed:
        return tensors
    known = {tensor.name: tensor for tensor in tensors}
    return tuple(
        _overridden(known[str(entry["name"])], entry)
        for entry in listed
        if isinstance(entry, Mapping) and str(entry.get("name")) in known
    )


def _overridden(tensor: Tensor, entry: Mapping[str, Any]) -> Tensor:
    dims, optional = entry.get("dims"), entry.get("optional", tensor.optional)
    shape = tensor.shape
    if isinstance(dims, list) and dims:
        # The dims of a model with batches leave the batch dimension out.
        is_batched = tensor.shape[:1] == (-1,) and len(dims) == len(tensor.shape) - 1
        shape = (-1, *map(int, dims)) if is_batched else tuple(map(int, dims))
    return replace(tensor, shape=shape, optional=bool(optional))
