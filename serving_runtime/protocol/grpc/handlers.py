"""grpcio's handlers around the methods of services: parsing, errors as statuses, a line in the log where asked for."""

import functools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from serving_runtime import proto
from serving_runtime.errors import InvalidArgument, ServingError
from serving_runtime.protocol import context
from serving_runtime.protocol.grpc.access import FORWARDED, GROUPS, forwarded
from serving_runtime.protocol.grpc.methods import Method, Service, StreamMethod
from serving_runtime.protocol.parameters import Forwarding
from serving_runtime.protocol.restrictions import Restrictions
from serving_runtime.telemetry import request_log

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Answer: TypeAlias = Callable[[Any, Context], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What is done with every call.

    Attributes:
        context_wanted: whether the methods are to know its context now; None where they never are.
        restrictions: which groups of calls need which metadata.
        forwarded: names of metadata that become request parameters; None for none.
        told: metadata of every answer: what it begins with, or where it is an error alone, ends with.
    """

    context_wanted: Callable[[], bool] | None = None
    restrictions: Restrictions = Restrictions(())  # noqa: RUF009 - never changes
    forwarded: "re.Pattern[str] | None" = None
    told: tuple[tuple[str, str], ...] = ()


def handlers(service: Service, policy: CallPolicy) -> Any:
    """Return the handlers of a service's methods; grpcio answers UNIMPLEMENTED for all that have none."""
    name = service.name

    def wrapped(method: str, answer: Answer) -> Answer:
        group = GROUPS[method]
        if policy.forwarded is not None and group == "inference":
            answer = _forwarding(Forwarding(policy.forwarded, policy.restrictions.headers), answer)
        if policy.context_wanted is not None:
            answer = _in_context(policy.context_wanted, answer)
        if policy.restrictions.restricts(group):
            answer = _restricted(policy.restrictions, group, answer)
        if group != "health":
            answer = _noted(method, answer)
        return answer

    found: dict[str, Any] = {}
    for method, call in service.methods.items():
        found[method] = grpc.unary_unary_rpc_method_handler(
            _telling(policy.told, wrapped(method, _unary(call))),
            request_deserializer=functools.partial(_parsed, proto.request_type(name, method)),
            response_serializer=_serialized,
        )
    for method, stream in service.streams.items():
        takes_stream = proto.takes_stream(name, method)
        answer = _stream(stream) if takes_stream else _asked_once(_stream(stream))
        make = grpc.stream_stream_rpc_method_handler if takes_stream else grpc.unary_stream_rpc_method_handler
        found[method] = make(
            _telling_first(policy.told, wrapped(method, answer)),
            request_deserializer=functools.partial(_sized, proto.request_type(name, method)),
        )
    return grpc.method_handlers_generic_handler(name, found)


def _unary(method: Method) -> Answer:
    async def answer(request: Any, context: Context) -> Any:
        try:
            if isinstance(request, ServingError):
                raise request
            return await method(request)
        except ServingError as error:
            await context.abort(grpc.StatusCode[error.grpc_code], error.message)

    return answer


def _stream(method: StreamMethod) -> Answer:
    async def answer(requests: AsyncIterator[tuple[Any, int]], context: Context) -> None:
        metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        try:
            await method(_readable(requests), context.write, metadata)
        except ServingError as error:
            await context.abort(grpc.StatusCode[error.grpc_code], error.message)

    return answer


async def _readable(requests: AsyncIterator[tuple[Any, int]]) -> AsyncIterator[tuple[Any, int]]:
    async for request, size_bytes in requests:
        if isinstance(request, ServingError):
            raise request
        yield request, size_bytes


def _asked_once(answer: Answer) -> Answer:
    """Return a stream's answer to one request in place of a stream of them."""

    async def requests(request: tuple[Any, int]) -> AsyncIterator[tuple[Any, int]]:
        yield request

    async def asked_once(request: tuple[Any, int], context: Context) -> None:
        await answer(requests(request), context)

    return asked_once


def _noted(name: str, answer: Answer) -> Answer:
    async def noted(request: Any, context: Context) -> Any:
        if not request_log.wanted():
            return await answer(request, context)
        began_ns = time.perf_counter_ns()
        sent = dict(context.invocation_metadata() or ())
        status = "GONE"
        try:
            response = await answer(request, context)
            status = "OK"
        except grpc.aio.AbortError:
            status = context.code().name
            raise
        finally:
            model = getattr(request, "model_name", None) or getattr(request, "name", "")
            request_log.note(str(sent.get(request_log.HEADER, "")), str(model), name, status, began_ns)
        return response

    return noted


def _telling(told: tuple[tuple[str, str], ...], answer: Answer) -> Answer:
    """Return the call that tells it with its one answer, or with its error, which stays one frame: trailers alone."""
    if not told:
        return answer

    async def telling(request: Any, call: Context) -> Any:
        call.set_trailing_metadata(told)
        response = await answer(request, call)
        call.set_trailing_metadata(())
        await call.send_initial_metadata(told)
        return response

    return telling


def _telling_first(told: tuple[tuple[str, str], ...], answer: Answer) -> Answer:
    """Return the stream that tells it before its first answer."""
    if not told:
        return answer

    async def telling(request: Any, call: Context) -> Any:
        await call.send_initial_metadata(told)
        return await answer(request, call)

    return telling


def _restricted(restrictions: Restrictions, group: str, answer: Answer) -> Answer:
    async def restricted(request: Any, call: Context) -> Any:
        sent = [(key.encode("latin-1"), _bytes(value)) for key, value in call.invocation_metadata() or ()]
        try:
            restrictions.check(group, sent)
        except ServingError as error:
            await call.abort(grpc.StatusCode[error.grpc_code], error.message)
        return await answer(request, call)

    return restricted


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


def _forwarding(chosen: Forwarding, answer: Answer) -> Answer:
    async def forwarding(request: Any, call: Context) -> Any:  # grpcio runs every call in a task of its own
        FORWARDED.set(forwarded([(key, value) for key, value in call.invocation_metadata() or ()], chosen))
        return await answer(request, call)

    return forwarding


def _in_context(wanted: Callable[[], bool], answer: Answer) -> Answer:
    async def in_context(request: Any, call: Context) -> Any:  # grpcio runs every call in a task of its own
        if not wanted():
            return await answer(request, call)
        sent = {key: str(value) for key, value in call.invocation_metadata() or ()}
        context.CALL.set(context.from_metadata(sent))
        return await answer(request, call)

    return in_context


def _parsed(kind: Any, content: bytes) -> Any:
    """Return the message, or the error to answer with: grpcio would log whatever is raised here, stack and all."""
    try:
        return kind.FromString(content)
    except DecodeError:
        return InvalidArgument(f"the request's {len(content)} bytes are no {kind.DESCRIPTOR.name}")


def _sized(kind: Any, content: bytes) -> tuple[Any, int]:
    return _parsed(kind, content), len(content)


def _serialized(message: Any) -> bytes:
    content: bytes = message.SerializeToString()
    return content
