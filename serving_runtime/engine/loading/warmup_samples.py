"""Model warm-up samples (Triton: model warmup), run as requests before the model is ready. Runs in threads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime.backends.base import StreamingModel
from serving_runtime.common.datatypes import BF16, BYTES, Array, element_count, to_bf16
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.common.request import NO_PARAMETERS, Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.warmup import Filling, SampleInput, WarmupSample
from serving_runtime.engine.requests.checks import RequestPlan
from serving_runtime.scheduler.execution.ragged import joining
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.sequences.inputs import SequenceInputs

FOLDER = "warmup"

_LENGTH_BYTES = 4


def run_samples(config: ModelConfig, model: Any, folder: Path, initial_states: Mapping[str, Array]) -> None:
    """Run every sample as often as configured; raises ModelError naming the first that fails.

    For a sequence model every row is the first request of a sequence.
    """
    for sample in config.warmup:
        where = f"model_warmup '{sample.name}'"
        try:
            arrays = _arrays(sample, config, model, folder)
            if config.sequences is not None:
                given = SequenceInputs(config.sequences, model.signature, initial_states, config.name)
                arrays = given.first_requests(arrays, sample.batch_size)
            if config.ragged is not None:
                alone = Job(arrays, sample.batch_size, None, _drop, 0)
                arrays = list(joining(config.ragged, model.signature).join([alone]))
            for _ in range(sample.count):
                _run(model, arrays)
        except ServingError as error:
            raise ModelError(f"{where} failed: {error}") from error
        except Exception as error:  # any exception of a backend's library, or no memory for the inputs
            raise ModelError(f"{where} failed: {error or type(error).__name__}") from error


def _arrays(sample: WarmupSample, config: ModelConfig, model: Any, folder: Path) -> list[Array]:
    """Return the sample's inputs in the form of a request's, and checked like them."""
    batch = (sample.batch_size,) if config.max_batch_size else ()
    tensors = [Tensor(given.name, given.datatype, _array(given, batch, folder)) for given in sample.inputs]
    arrays, _, _ = RequestPlan(config, model.signature).arrange(tensors)
    return arrays


def _array(given: SampleInput, batch: tuple[int, ...], folder: Path) -> Array:
    shape = (*batch, *given.dims)
    if given.filling is Filling.FILE:
        return _from_file(given, shape, folder / FOLDER / given.file)
    if given.filling is Filling.ZEROS:
        return np.full(shape, b"", dtype=object) if given.datatype is BYTES else np.zeros(shape, given.datatype.dtype)
    return _random(given, shape)


def _random(given: SampleInput, shape: tuple[int, ...]) -> Array:
    """Return numbers that a model probably accepts: small ones, and short texts."""
    random = np.random.default_rng()
    if given.datatype is BYTES:
        texts = np.empty(element_count(shape), dtype=object)
        texts[:] = [random.integers(97, 123, 8, dtype="u1").tobytes() for _ in range(texts.size)]
        return texts.reshape(shape)
    dtype = given.datatype.dtype
    if given.datatype is BF16:
        return to_bf16(random.random(shape, "f4"))
    if dtype.kind == "f":
        return random.random(shape, "f4").astype(dtype)
    return random.integers(0, 2, shape, dtype="u1").astype(dtype)


def _from_file(given: SampleInput, shape: tuple[int, ...], file: Path) -> Array:
    """Return a file's values for the whole batch, row by row: little-endian numbers, or texts in V2's encoding."""
    try:
        if given.datatype is BYTES:
            return _texts(file.read_bytes(), element_count(shape), given.name, file).reshape(shape)
        dtype = given.datatype.dtype
        expected = element_count(shape) * dtype.itemsize
        found = file.stat().st_size
        if found != expected:
            raise ModelError(f"input '{given.name}' of shape {list(shape)} needs {expected} bytes, {file} has {found}")
        return np.fromfile(file, dtype).reshape(shape)
    except OSError as error:
        raise ModelError(f"input '{given.name}': {file} cannot be read: {error.strerror}") from error


def _texts(content: bytes, count: int, name: str, file: Path) -> Array:
    """Return elements that each follow their length, four bytes little-endian."""
    elements: list[bytes] = []
    position = 0
    while position + _LENGTH_BYTES <= len(content) and len(elements) < count:
        length = int.from_bytes(content[position : position + _LENGTH_BYTES], "little")
        position += _LENGTH_BYTES
        elements.append(content[position : position + length])
        position += length
    if len(elements) != count or position != len(content):
        raise ModelError(f"input '{name}': {file} does not hold {count} elements, each after its length in four bytes")
    array = np.empty(count, dtype=object)
    array[:] = elements
    return array


def _run(model: Any, arrays: list[Array]) -> None:
    if isinstance(model, StreamingModel):
        model.stream(arrays, _Unheard())
    else:
        model.run(arrays)


def _drop(_result: object) -> None:
    """Discard the result of a sample."""


class _Unheard:
    """Discards the responses of a decoupled model's sample."""

    cancelled = False
    id = ""
    outputs: Sequence[str] = ()
    parameters = NO_PARAMETERS

    def when_cancelled(self, notify: Any) -> None: ...

    def __call__(self, outputs: Any) -> None: ...
