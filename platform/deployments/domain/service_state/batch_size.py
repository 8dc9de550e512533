"""Maximum batch size of a model whose configuration has none, found by its profile. Pure."""

from collections.abc import Mapping

# Fields of a ModelConfig with which a service's file configures batching itself, or the shapes with a batch.
_SAID = (
    "max_batch_size",
    "sequence_batching",
    "ensemble_scheduling",
    "model_transaction_policy",
    "input",
    "output",
)


_ROWS_BEFORE = 4
"""The batch size of a model without a configuration before profiles found one."""


def with_batch_size(
    config: Mapping[str, object],
    profile: Mapping[str, object],
    signature: Mapping[str, object],
    source_name: str,
    kept: int | None = None,
) -> dict[str, object]:
    """Return `config`, the overrides of a service's file, with the batch size found.

    Args:
        profile: of the version; has one only where the model's own configuration has no batching.
        signature: of the version, as stored by its check.
        source_name: of the version: a file, or an archive of a folder that may have a configuration.
        kept: the clients' former batch size, where that is larger than the one found (`kept_batch_size`).
    """
    found = found_batch_size(config, profile, kept)
    rows = found or _rows_of_single_values(signature)
    if type(rows) is not int or rows < 1 or any(name in config for name in _SAID):
        return dict(config)
    batching: dict[str, object] = {"dynamic_batching": {}} if found or source_name.lower().endswith(".onnx") else {}
    return {**batching, **config, "max_batch_size": rows}


def found_batch_size(config: Mapping[str, object], profile: Mapping[str, object], kept: int | None) -> int:
    """Return the batch size found for a version; 0 where `config` has one, or none was found."""
    found = profile.get("max_batch_size")
    if type(found) is not int or any(name in config for name in _SAID):
        return 0
    return max(found, kept or 0)


def kept_batch_size(live: int, new: int) -> int | None:
    """Return what a new revision keeps of the live one's batch size, both as found; None where it has no less.

    The size is a measurement, so that of two equal versions one may have less. Clients need not notice.
    """
    return live if 0 < new < live else None


def _rows_of_single_values(signature: Mapping[str, object]) -> object:
    """Return the batch size that keeps the inputs of a version checked by an earlier release; None for all others.

    A file's input `[N]` was served as `[batch, 1]` then and is `[N]` now, unless a batch size is set.
    """
    inputs = signature.get("inputs")
    if isinstance(inputs, list) and inputs and all(each.get("shape") == [-1, 1] for each in inputs):
        return signature.get("max_batch_size", _ROWS_BEFORE)
    return None
