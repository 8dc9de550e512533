"""The largest batch of a model whose configuration says none: what its profile found good. Pure."""

from collections.abc import Mapping

# Fields of a ModelConfig by which a service's file says itself how requests are put together, or what has a batch.
_SAID = (
    "max_batch_size",
    "sequence_batching",
    "ensemble_scheduling",
    "model_transaction_policy",
    "input",
    "output",
)


_ROWS_BEFORE = 4
"""What a model without a configuration had before profiles found a size."""


def with_batch_size(
    config: Mapping[str, object],
    profile: Mapping[str, object],
    signature: Mapping[str, object],
    source_name: str,
    kept: int | None = None,
) -> dict[str, object]:
    """Return `config`, what a service's file lays over the model's own, with the batch size that was found good.

    Args:
        profile: of the version; says one only where the model's own configuration says nothing of batches.
        signature: of the version, as it was stored when that was checked.
        source_name: of the version: a file, or an archive of a folder that may have a configuration.
        kept: what clients had before, where that is more than was found (`kept_batch_size`).
    """
    found = found_batch_size(config, profile, kept)
    rows = found or _rows_of_single_values(signature)
    if type(rows) is not int or rows < 1 or any(name in config for name in _SAID):
        return dict(config)
    batching: dict[str, object] = {"dynamic_batching": {}} if found or source_name.lower().endswith(".onnx") else {}
    return {**batching, **config, "max_batch_size": rows}


def found_batch_size(config: Mapping[str, object], profile: Mapping[str, object], kept: int | None) -> int:
    """Return the largest batch of a version whose size was found; 0 where `config` says one, or none was found."""
    found = profile.get("max_batch_size")
    if type(found) is not int or any(name in config for name in _SAID):
        return 0
    return max(found, kept or 0)


def kept_batch_size(live: int, new: int) -> int | None:
    """Return what a new revision keeps of the live one's batch size, both as found; None where it has no less.

    What was found is measured, so that of two versions alike one may have less. Clients need not know.
    """
    return live if 0 < new < live else None


def _rows_of_single_values(signature: Mapping[str, object]) -> object:
    """Return the batch size that keeps what a version checked by an earlier release takes; None for all others.

    A file's input `[N]` was served as `[batch, 1]` then and is `[N]` now, unless a batch size is said.
    """
    inputs = signature.get("inputs")
    if isinstance(inputs, list) and inputs and all(each.get("shape") == [-1, 1] for each in inputs):
        return signature.get("max_batch_size", _ROWS_BEFORE)
    return None
