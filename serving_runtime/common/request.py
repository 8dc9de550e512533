"""What flows down (InferRequest) and up (InferResponse) through the runtime.

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
    """One named array; `datatype` tells BF16 from UINT16, which share a numpy dtype."""

    name: str
    datatype: Datatype
    array: Array


class Cancellable(Protocol):
    """Work that nobody may want any more."""

    def cancel(self) -> None: ...


class Streaming(Cancellable, Protocol):
    """A request that may be answered any number of times, whose client may be slow to read."""

    @property
    def decoupled(self) -> bool:
        """Return whether there may be more answers than one."""
        ...

    def pause(self) -> None:
        """Let the model wait with further answers: nobody reads those there are."""

    def resume(self) -> None:
        """Let the model go on after `pause`."""


class Followed(Protocol):
    """A request that somebody follows through the server (telemetry.tracing)."""

    def executed(self, model: str, version: str, arrived_ns: int, timing: Any) -> None:
        """Take note that a model ran for it; `timing` is the execution's BatchTiming."""
        ...


class RequestContext(NamedTuple):
    """What a request's headers or metadata say beside the request, for who follows requests through a system.

    Attributes:
        request_id: the `x-request-id` that a gateway or a client gave; empty where none was.
        traceparent, tracestate: as W3C Trace Context defines them; empty where they were not sent.
        trace: told how the request fares; None where it is not followed.
    """

    request_id: str = ""
    traceparent: str = ""
    tracestate: str = ""
    trace: Followed | None = None


class InferRequest(NamedTuple):
    """One inference request as the client sent it, not yet checked against a model.

    Attributes:
        model_version: empty for the version that the model's policy makes the default.
        outputs: names asked for, in order; empty for all.
        parameters: request parameters; the runtime understands `timeout` and `priority`, a model may know others.
        classes: how many classes to answer with in place of an output, by its name (Triton: classification extension).
        context: None where nothing in the server asks for it.
    """

    model_name: str
    model_version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...] = ()
    id: str = ""
    parameters: Mapping[str, Any] = NO_PARAMETERS
    classes: Mapping[str, int] = NO_PARAMETERS
    context: RequestContext | None = None


class InferResponse(NamedTuple):
    """One answer: outputs in the order asked for, or in the model's order.

    Attributes:
        parameters: of the answer; values are str, int, float or bool.
        final: no other answer follows. A decoupled model's last one may have no outputs.
    """

    model_name: str
    model_version: str
    outputs: tuple[Tensor, ...]
    id: str = ""
    parameters: Mapping[str, Any] = NO_PARAMETERS
    final: bool = True


Outcome: TypeAlias = InferResponse | ServingError
OnDone: TypeAlias = Callable[[Outcome], None]
"""Called on the event loop once per response, unless the request was cancelled; the last call is an error or `final`.

Models that are not decoupled answer exactly once.
"""
