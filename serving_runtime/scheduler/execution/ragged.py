"""Ragged batching (Triton: ragged batching): joins requests whose inputs differ in shape, and splits the outputs."""

from collections.abc import Sequence

import numpy as np

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError, ServingError
from serving_runtime.config.ragged import BatchInputKind, Ragged
from serving_runtime.config.signature import Signature
from serving_runtime.scheduler.execution.execution import Joining, join, parted
from serving_runtime.scheduler.job import Job, Result


def joining(ragged: Ragged, signature: Signature) -> Joining:
    """Return how to join and split requests of a model with ragged batching."""
    inputs = {spec.name: position for position, spec in enumerate(signature.inputs)}
    outputs = {spec.name: position for position, spec in enumerate(signature.outputs)}
    flat = [inputs[name] for name in ragged.inputs]
    made = [
        (inputs[target], given.kind, given.datatype.dtype, inputs[given.source])
        for given in ragged.batch_inputs
        for target in given.targets
    ]
    scattered = {outputs[target]: inputs[given.source] for given in ragged.batch_outputs for target in given.targets}

    def join_ragged(jobs: Sequence[Job]) -> Sequence[Array]:
        columns = [list(column) for column in zip(*[job.arrays for job in jobs], strict=True)]
        shapes = {source: [array.shape for array in columns[source]] for _, _, _, source in made}
        for position in flat:
            columns[position] = [array.reshape(-1) for array in columns[position]]
        for position, kind, dtype, source in made:
            columns[position] = [batch_input(kind, shapes[source], dtype)]
        return [join(column) for column in columns]

    def part_ragged(made_outputs: list[Array], jobs: Sequence[Job]) -> list[Result]:
        plain = [array for position, array in enumerate(made_outputs) if position not in scattered]
        rows = [iter(found) for found in _rows(plain, jobs)]
        pieces = {
            position: scatter(made_outputs[position], [job.arrays[source].shape for job in jobs])
            for position, source in scattered.items()
        }
        return [
            [
                pieces[position][number] if position in scattered else next(rows[number])
                for position in range(len(made_outputs))
            ]
            for number in range(len(jobs))
        ]

    return Joining(join_ragged, part_ragged)


def _rows(outputs: list[Array], jobs: Sequence[Job]) -> list[list[Array]]:
    return [list(found) for found in parted(outputs, jobs) if not isinstance(found, ServingError)]


def batch_input(kind: BatchInputKind, shapes: Sequence[tuple[int, ...]], dtype: "np.dtype[np.generic]") -> Array:
    """Return the contents of a batch_input for the source's shapes, [rows, ...] per request. Pure."""
    if kind in (BatchInputKind.ITEM_SHAPE, BatchInputKind.ITEM_SHAPE_FLATTEN):
        items = np.array([shape[1:] for shape in shapes for _ in range(shape[0])], dtype)
        return items if kind is BatchInputKind.ITEM_SHAPE else items.reshape(-1)
    counts = [int(np.prod(shape)) for shape in shapes]
    if kind is BatchInputKind.ELEMENT_COUNT:
        return np.array(counts, dtype)
    if kind is BatchInputKind.MAX_ELEMENT_COUNT_AS_SHAPE:
        return np.zeros(max(counts), dtype)
    accumulated = np.cumsum(counts).astype(dtype)
    if kind is BatchInputKind.ACCUMULATED_ELEMENT_COUNT:
        return accumulated
    return np.concatenate([np.zeros(1, dtype), accumulated])


def scatter(array: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return the parts of a batch's flat output, in the requests' shapes. Pure; raises BackendError."""
    counts = [int(np.prod(shape)) for shape in shapes]
    if array.size != sum(counts):
        raise BackendError(f"the model returned {array.size} elements for a batch of {sum(counts)}")
    pieces = np.split(array.reshape(-1), np.cumsum(counts)[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
