"""Call policy of the gRPC server: access restrictions, metadata forwarded to models, logging.

A server converts bytes to messages and errors to statuses; `governed` wraps a method in the rest.
"""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.statuses import grpc_status
from serving_runtime.protocol import callers, context
from serving_runtime.protocol.grpc.access import FORWARDED, GROUPS, Sent, forwarded
from serving_runtime.protocol.grpc.codec import part_limit
from serving_runtime.protocol.grpc.methods import Method, StreamMethod, Write
from serving_runtime.protocol.restrictions import Restrictions
from serving_runtime.protocol.tensors.parameters import Forwarding
from serving_runtime.telemetry import request_log


class Call(NamedTuple):
    """A call's metadata and writer, for methods and their wrappers.

    Attributes:
        write: for the answers of streams.
        caller: by metadata or address (protocol.callers).
    """

    metadata: Sent
    write: Write
    caller: bytes = b""


Answer: TypeAlias = Callable[[Any, Call], Awaitable[Any]]
"""From a message, or an iterator of serialized messages, to the answer's message or None; raises ServingError.
Every call runs in a task of its own, whose context variables it may set."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """Policy of every call.

    Attributes:
        context_wanted: returns whether the methods use the request context now; None where they never do.
        restrictions: which groups of calls need which metadata.
        forwarded: names of metadata that become request parameters; None for none.
        answer_metadata: of every answer, sent before it, or in the trailers of an answer that is only an error.
    """

    context_wanted: Callable[[], bool] | None = None
    restrictions: Restrictions = Restrictions(())  # noqa: RUF009 - never changes
    forwarded: "re.Pattern[str] | None" = None
    answer_metadata: tuple[tuple[str, str], ...] = ()

    def governs(self, method: str) -> bool:
        """Return whether calls of a method are always checked or changed."""
        group = GROUPS[method]
        return self.restrictions.restricts(group) or (self.forwarded is not None and group == "inference")

    def watches(self) -> bool:
        """Return whether calls are logged or traced now."""
        return request_log.wanted() or (self.context_wanted is not None and self.context_wanted())


def governed(name: str, method: Answer, policy: CallPolicy) -> Answer:
    """Return the method of that name wrapped in the policy."""
    group = GROUPS[name]
    if policy.forwarded is not None and group == "inference":
        method = _forwarding(Forwarding(policy.forwarded, policy.restrictions.headers), method)
    if policy.context_wanted is not None:
        method = _in_context(policy.context_wanted, method)
    if policy.restrictions.restricts(group):
        method = _restricted(policy.restrictions, group, method)
    if group != "health":
        method = _noted(name, method)
    return method


def unary(method: Method) -> Answer:
    """Return a method that takes one message."""

    async def answer(request: Any, call: Call) -> Any:
        if isinstance(request, ServingError):
            raise request
        callers.CALL.set(call.caller)
        return await method(request)

    return answer


def streaming(method: StreamMethod) -> Answer:
    """Return a method that takes an iterator of serialized messages and writes its answers."""

    async def answer(requests: AsyncIterator[memoryview], call: Call) -> None:
        metadata = {key: str(value) for key, value in call.metadata}
        callers.CALL.set(call.caller)
        await method(requests, call.write, metadata)

    return answer


def parsed(kind: Any, content: bytes | memoryview) -> Any:
    """Return the message; raises InvalidArgument, and before parsing where it has too many parts."""
    part_limit.check(kind.DESCRIPTOR.name, memoryview(content))
    try:
        return kind.FromString(content)
    except DecodeError as error:
        raise InvalidArgument(f"the request's {len(content)} bytes are no {kind.DESCRIPTOR.name}") from error


def _noted(name: str, answer: Answer) -> Answer:
    async def noted(request: Any, call: Call) -> Any:
        if not request_log.wanted():
            return await answer(request, call)
        began_ns = time.perf_counter_ns()
        sent = dict(call.metadata)
        status = "GONE"
        try:
            response = await answer(request, call)
            status = "OK"
        except ServingError as error:
            status = grpc_status(error)
            raise
        finally:
            model = getattr(request, "model_name", None) or getattr(request, "name", "")
            request_id, trace = (str(sent.get(key, "")) for key in (request_log.HEADER, request_log.TRACEPARENT))
            request_log.note(request_id, str(model), name, status, began_ns, traceparent=trace)
        return response

    return noted


def _restricted(restrictions: Restrictions, group: str, answer: Answer) -> Answer:
    async def restricted(request: Any, call: Call) -> Any:
        restrictions.check(group, [(key.encode("latin-1"), _bytes(value)) for key, value in call.metadata])
        return await answer(request, call)

    return restricted


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


def _forwarding(chosen: Forwarding, answer: Answer) -> Answer:
    async def forwarding(request: Any, call: Call) -> Any:
        FORWARDED.set(forwarded(call.metadata, chosen))
        return await answer(request, call)

    return forwarding


def _in_context(wanted: Callable[[], bool], answer: Answer) -> Answer:
    async def in_context(request: Any, call: Call) -> Any:
        if not wanted():
            return await answer(request, call)
        context.CALL.set(context.from_metadata({key: str(value) for key, value in call.metadata}))
        return await answer(request, call)

    return in_context
