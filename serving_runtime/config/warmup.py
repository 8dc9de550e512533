"""Model warm-up: checked samples (Triton: model configuration, model_warmup)."""

import enum
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from serving_runtime.common.datatypes import FROM_CONFIG_NAME, MAX_ELEMENTS, Datatype, element_count
from serving_runtime.common.errors import ModelError
from serving_runtime.proto import DATA_TYPES


class Filling(enum.Enum):
    """Fillings of a sample's input; the names of ModelWarmup.Input's fields."""

    ZEROS = "zero_data"
    RANDOM = "random_data"
    FILE = "input_data_file"


@dataclass(frozen=True, slots=True)
class SampleInput:
    """One input of a sample.

    Attributes:
        dims: without the batch dimension.
        file: in the model's folder warmup; empty for other fillings.
    """

    name: str
    datatype: Datatype
    dims: tuple[int, ...]
    filling: Filling
    file: str = ""


@dataclass(frozen=True, slots=True)
class WarmupSample:
    """One request to run before the model is ready.

    Attributes:
        batch_size: rows; 1 for a model without a batch dimension.
        count: how often to run it.
    """

    name: str
    batch_size: int
    count: int
    inputs: tuple[SampleInput, ...]


def warmup_samples(config: Any) -> tuple[WarmupSample, ...]:
    """Return the samples of a ModelConfig message; raises ModelError for invalid ones."""
    return tuple(_sample(message, config) for message in config.model_warmup)


def _sample(message: Any, config: Any) -> WarmupSample:
    where = f"model '{config.name}': model_warmup '{message.name}'"
    most = max(config.max_batch_size, 1)
    if message.batch_size > most:
        raise ModelError(f"{where}: batch_size must be in [1, {most}], found {message.batch_size}")
    inputs = tuple(_input(name, message.inputs[name], f"{where} input '{name}'") for name in sorted(message.inputs))
    return WarmupSample(message.name, message.batch_size or 1, message.count or 1, inputs)


def _input(name: str, message: Any, where: str) -> SampleInput:
    datatype = FROM_CONFIG_NAME.get(DATA_TYPES.values_by_number[message.data_type].name)
    if datatype is None:
        raise ModelError(f"{where} must have a data_type")
    dims = tuple(message.dims)
    if any(dim < 0 for dim in dims) or element_count(dims) > MAX_ELEMENTS:
        raise ModelError(f"{where}: dims must be fixed, >= 0 and not too large, found {list(dims)}")
    choice = message.WhichOneof("input_data_type")
    if choice is None:
        raise ModelError(f"{where} must have zero_data, random_data or input_data_file")
    file = message.input_data_file
    if choice == Filling.FILE.value and (file != PurePath(file).name or file in ("", ".", "..")):
        raise ModelError(f"{where}: input_data_file '{file}' must be a plain file name in the folder warmup")
    return SampleInput(name, datatype, dims, Filling(choice), file)
