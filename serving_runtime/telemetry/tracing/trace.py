"""Trace of one request: its timestamps, and those of the models that ran for it."""

import re
import time
from collections.abc import Iterable
from typing import NamedTuple

from serving_runtime.common.request import RequestContext, Tensor
from serving_runtime.telemetry.statistics import BatchTiming

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?")
"""W3C Trace Context: version, trace id, parent id, flags."""


QUEUE_INPUT, BACKEND_OUTPUT = "TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"
"""Triton's names of a request's tensors and of its response's."""

MOST_TENSORS = 1000


class Step(NamedTuple):
    """One model's run for a request; an ensemble has several. Timestamps are of the monotonic clock."""

    model: str
    version: str
    arrived_ns: int
    timing: BatchTiming


class Trace:
    """The trace of a request.

    Attributes:
        id: counted from 1.
        began_ns, ended_ns: of the monotonic clock; with `epoch_ns` added, since the epoch.
        error: why it failed; may be empty.
        tensors: its inputs and outputs; None where they are not traced.
    """

    def __init__(self, number: int, model: str, version: str, context: RequestContext) -> None:
        self.id = number
        self.model = model
        self.version = version
        self.context = context
        self.steps: list[Step] = []
        self.error = ""
        self.tensors: list[tuple[str, Tensor]] | None = None
        self.began_ns = time.monotonic_ns()
        self.ended_ns = self.began_ns
        self.epoch_ns = time.time_ns() - self.began_ns

    def executed(self, model: str, version: str, arrived_ns: int, timing: BatchTiming) -> None:
        """Record that a model ran for the request."""
        self.steps.append(Step(model, version, arrived_ns, timing))

    def carried(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Record tensors; of a stream with many, the first ones."""
        if self.tensors is not None and len(self.tensors) < MOST_TENSORS:
            self.tensors += [(activity, tensor) for tensor in tensors]

    def end(self, version: str, error: str) -> None:
        self.version = version or self.version
        self.error = error
        self.ended_ns = time.monotonic_ns()


def sampled_by_caller(context: RequestContext | None) -> bool | None:
    """Return whether the caller samples this request (W3C: the sampled flag); None where it says nothing."""
    if context is None or not context.traceparent:
        return None
    found = _TRACEPARENT.fullmatch(context.traceparent)
    return bool(int(found[1], 16) & 1) if found is not None else None
