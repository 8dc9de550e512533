"""Instance group placement on GPUs (Triton: instance groups). Pure, but for `spread`, which opens the model there.

`settle` writes the result into the config, so the config that clients see shows the model's devices.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving_runtime.backends.base import LoadedModel
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError
from serving_runtime.config.instances import check_kinds, kind_of
from serving_runtime.devices.gpu import Gpu


def settle(config: Any, gpus: Sequence[Gpu], why_none: str, *, capable: bool) -> None:
    """Give every instance group of a ModelConfig message a kind and, on GPUs, their numbers; raises ModelError.

    Triton: KIND_AUTO is KIND_GPU where all GPUs that it lists exist, else KIND_CPU; no list means all GPUs.

    Args:
        gpus: that this process may use.
        why_none: the reason where it may use none, in words.
        capable: whether the model's library as installed can run models on GPUs.
    """
    check_kinds(config)
    groups = list(config.instance_group)
    if not groups and capable and gpus:
        groups = [config.instance_group.add(count=1)]
    for group in groups:
        kind = kind_of(group)
        there = all(number < len(gpus) for number in group.gpus)
        if kind == "KIND_AUTO":
            kind = "KIND_GPU" if capable and gpus and there else "KIND_CPU"
        elif kind == "KIND_GPU":
            _check(config.name, list(group.gpus), gpus, why_none)
        if kind == "KIND_GPU":
            group.gpus[:] = list(group.gpus) or list(range(len(gpus)))
        elif group.gpus:
            group.ClearField("gpus")
        if kind == "KIND_GPU" or kind_of(group) != "KIND_AUTO":
            group.kind = type(group).DESCRIPTOR.enum_types_by_name["Kind"].values_by_name[kind].number


def _check(name: str, asked: Sequence[int], gpus: Sequence[Gpu], why_none: str) -> None:
    where = f"model '{name}': instance_group asks for"
    if not gpus:
        what = f"GPU {asked[0]}" if asked else "GPUs"
        raise ModelError(f"{where} {what}, and this process has none: {why_none}")
    for number in asked:
        if number >= len(gpus):
            raise ModelError(f"{where} GPU {number}; this process has {len(gpus)}, numbered from 0")


def spread(counts: Mapping[int | None, int], load: Callable[[int | None], Any]) -> Any:
    """Return a model that `load` opens on its one device, or one that is open on each of several.

    Args:
        counts: instances by GPU, None for the CPU.
    """
    if len(counts) == 1:
        return load(next(iter(counts)))
    opened: list[tuple[Any, int]] = []
    try:
        for device, count in counts.items():
            opened.append((load(device), count))
    except BaseException:
        for model, _ in opened:
            model.close()
        raise
    for model, _ in opened:
        if not hasattr(model, "run"):
            raise ModelError("a model that answers a request any number of times runs on one device")
    return SpreadModel(opened)


class SpreadModel:
    """One model, open on several devices; each run takes the device that is least busy for its number of instances."""

    def __init__(self, opened: Sequence[tuple[LoadedModel, int]]) -> None:
        self._models = [model for model, _ in opened]
        self._counts = [count for _, count in opened]
        self._running = [0] * len(opened)
        self._lock = threading.Lock()
        self.signature = self._models[0].signature
        self.opsets = self._models[0].opsets
        self.max_batch_size = getattr(self._models[0], "max_batch_size", 0)  # like a plan's profiles

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        with self._lock:
            place = min(range(len(self._models)), key=lambda place: self._running[place] / self._counts[place])
            self._running[place] += 1
        try:
            return self._models[place].run(inputs)
        finally:
            with self._lock:
                self._running[place] -= 1

    def close(self) -> None:
        for model in self._models:
            model.close()
