"""Inference requests (InferRequest) and responses (InferResponse) inside the runtime.

Protocols make requests out of bytes and bytes out of responses; the engine, the scheduler and the backends see only
these. Tensors are views of the received bytes wherever the wire format allows it. They are named tuples because one
of each is made per request: a frozen dataclass takes four times as long to build.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from serving_runtime.common.datatypes import Array, Datatype
from serving_runtime.common.errors import ServingError

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


class Tensor(NamedTuple):
    """One named array; `datatype` distinguishes BF16 from UINT16, which share a numpy dtype."""

    name: str
    datatype: Datatype
    array: Array


class Cancellable(Protocol):
    """Work that may be cancelled."""

    def cancel(self) -> None: ...


class Streaming(Cancellable, Protocol):
    """A request that may be answered any number of times, whose client may be slow to read."""

    @property
    def decoupled(self) -> bool:
        """Return whether there may be more answers than one."""
        ...

    def pause(self) -> None:
        """Hold further answers of the model back: the client does not read those already sent."""

    def resume(self) -> None:
        """Let the model go on after `pause`."""


class Followed(Protocol):
    """A traced request (telemetry.tracing)."""

    def executed(self, model: str, version: str, arrived_ns: int, timing: Any) -> None:
        """Record that a model ran for it; `timing` is the execution's BatchTiming."""
        ...


class RequestContext(NamedTuple):
    """Headers or metadata of a request that identify it across a system, for tracing and logs.

    Attributes:
        request_id: the `x-request-id` of a gateway or a client; empty without one.
        traceparent, tracestate: as W3C Trace Context defines them; empty where absent.
        trace: records the request's progress; None where it is not traced.
    """

    request_id: str = ""
    traceparent: str = ""
    tracestate: str = ""
    trace: Followed | None = None


class InferRequest(NamedTuple):
    """One inference request as the client sent it, not yet checked against a model.

    Attributes:
        model_version: empty for the default version by the model's policy.
        outputs: requested names, in order; empty for all.
        parameters: request parameters; the runtime understands `timeout` and `priority`, a model may know others.
        classes: how many classes to answer with in place of an output, by its name (Triton: classification extension).
        context: None where nothing in the server uses it.
        caller: who shares the queue with others, by header or address; empty where unknown (protocol.callers).
    """

    model_name: str
    model_version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...] = ()
    id: str = ""
    parameters: Mapping[str, Any] = NO_PARAMETERS
    classes: Mapping[str, int] = NO_PARAMETERS
    context: RequestContext | None = None
    caller: bytes = b""


class InferResponse(NamedTuple):
    """One answer: outputs in the requested order, or in the model's order.

    Attributes:
        parameters: of the answer; values are str, int, float or bool.
        final: no other answer follows. A decoupled model's last one may have no outputs.
        rows: of the request, its batch dimension; 1 where the model does not batch.
    """

    model_name: str
    model_version: str
    outputs: tuple[Tensor, ...]
    id: str = ""
    parameters: Mapping[str, Any] = NO_PARAMETERS
    final: bool = True
    rows: int = 1


Outcome: TypeAlias = InferResponse | ServingError
OnDone: TypeAlias = Callable[[Outcome], None]
"""Called on the event loop once per response, unless the request was cancelled; the last call is an error or `final`.

Models that are not decoupled answer exactly once.
"""
