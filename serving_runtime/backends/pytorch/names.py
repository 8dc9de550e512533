"""Tensor name mapping between a config and a torch program (Triton: PyTorch backend, model configuration). Pure."""

import re
from collections.abc import Sequence

from serving_runtime.common.errors import ModelError
from serving_runtime.config.tensors import WrittenTensor

_NUMBERED = re.compile(r".+__([0-9]+)")


def in_order(written: Sequence[WrittenTensor], known: Sequence[str], kind: str) -> list[WrittenTensor]:
    """Return the config's tensors in the program's order; raises ModelError where they do not match.

    By the program's own names, else by numbers (`INPUT__0`), else in the listed order.

    Args:
        known: the program's names; empty where its file has none.
    """
    if known and len(written) != len(known):
        raise ModelError(f"config.pbtxt lists {len(written)} {kind}s, the model has {len(known)}: {', '.join(known)}")
    names = [tensor.name for tensor in written]
    if known and set(names) == set(known):
        return sorted(written, key=lambda tensor: known.index(tensor.name))
    numbers = [int(found[1]) if (found := _NUMBERED.fullmatch(name)) else -1 for name in names]
    if sorted(numbers) == list(range(len(names))):
        return [written[numbers.index(position)] for position in range(len(names))]
    return list(written)
