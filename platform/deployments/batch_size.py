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


def with_batch_size(config: Mapping[str, object], profile: Mapping[str, object]) -> dict[str, object]:
    """Return `config`, what a service's file lays over the model's own, with the batch size that was found good.

    Args:
        profile: of the version; says one only where the model's own configuration says nothing of batches.
    """
    rows = profile.get("max_batch_size")
    if type(rows) is not int or rows < 1 or any(name in config for name in _SAID):
        return dict(config)
    return {"dynamic_batching": {}, **config, "max_batch_size": rows}
