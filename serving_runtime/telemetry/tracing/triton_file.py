"""Triton trace file: JSON as Triton's trace summary tools read it; the file is complete after each request.

With a log frequency of N the files are PATH.0, PATH.1 ... with N requests each.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from serving_runtime.common.request import Tensor
from serving_runtime.telemetry.tracing.settings import TIMESTAMPS, TraceSettings
from serving_runtime.telemetry.tracing.trace import Trace

logger = logging.getLogger(__name__)


class TritonFile:
    """Writes traces; does nothing where the path is empty."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = 0
        self._in_file = 0

    def write(self, trace: Trace, settings: TraceSettings) -> None:
        if not self._path:
            return
        if settings.log_frequency and self._in_file >= settings.log_frequency:
            self._number += 1
            self._in_file = 0
        path = Path(f"{self._path}.{self._number}" if settings.log_frequency else self._path)
        content = ",\n".join(json.dumps(item) for item in items(trace, settings.levels))
        try:
            _append(path, content, begins=self._in_file == 0)
        except OSError as error:
            logger.warning("the trace of a request cannot be written to %s: %s", path, error.strerror)
        self._in_file += 1

    def close(self) -> None:
        """Does nothing: every trace is written at once."""


def items(trace: Trace, levels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of a request, and of each model of an ensemble's (Triton: trace)."""
    about: dict[str, Any] = {"id": trace.id, "model_name": trace.model, "model_version": _number(trace.version)}
    if trace.context.request_id:
        about["request_id"] = trace.context.request_id
    yield about
    for activity, tensor in trace.tensors or ():
        yield {"id": trace.id, "activity": activity, "tensor": _tensor(tensor)}
    if TIMESTAMPS in levels:
        yield from _moments(trace)


def _moments(trace: Trace) -> Iterator[dict[str, Any]]:
    yield _timestamps(trace.id, {"REQUEST_START": trace.began_ns}, trace)
    alone = len(trace.steps) == 1 and trace.steps[0].model == trace.model
    for number, step in enumerate(trace.steps, 1):
        identifier = trace.id if alone else f"{trace.id}.{number}"
        if not alone:
            version = _number(step.version)
            yield {"id": identifier, "model_name": step.model, "model_version": version, "parent_id": trace.id}
        started, input_done, infer_done, output_done = step.timing
        moments = {
            "QUEUE_START": step.arrived_ns,
            "COMPUTE_START": started,
            "COMPUTE_INPUT_END": input_done,
            "COMPUTE_OUTPUT_START": infer_done,
            "COMPUTE_END": output_done,
        }
        yield _timestamps(identifier, moments, trace)
    yield _timestamps(trace.id, {"REQUEST_END": trace.ended_ns}, trace)


def _tensor(tensor: Tensor) -> dict[str, str]:
    """Return a tensor as Triton writes it: everything is text, elements are separated by commas."""
    flat = tensor.array.ravel().tolist()
    elements = [item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item) for item in flat]
    shape = ",".join(str(dim) for dim in tensor.array.shape)
    return {"name": tensor.name, "data": ",".join(elements), "shape": shape, "dtype": tensor.datatype.name}


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else -1


def _timestamps(number: int | str, moments: dict[str, int], trace: Trace) -> dict[str, Any]:
    stamps = [{"name": name, "ns": moment + trace.epoch_ns} for name, moment in moments.items()]
    return {"id": number, "timestamps": stamps}


def _append(path: Path, content: str, *, begins: bool) -> None:
    """Append entries to the list in a file; the first ones replace an old file."""
    with path.open("wb" if begins else "r+b") as file:
        if begins:
            file.write(b"[\n")
        else:
            file.seek(-2, 2)  # over the end of the list
            file.write(b",\n")
        file.write(content.encode() + b"\n]")
