"""grpcio handlers of the services' methods: parsing, and errors as statuses."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from serving_runtime import proto
from serving_runtime.common.errors import ServingError
from serving_runtime.common.statuses import grpc_status
from serving_runtime.protocol.grpc.methods import Service
from serving_runtime.protocol.grpc.policy import Answer, Call, CallPolicy, governed, parsed, streaming, unary

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = Callable[[Any, Context], Awaitable[Any]]


def handlers(service: Service, policy: CallPolicy) -> Any:
    """Return the handlers of a service's methods; grpcio answers UNIMPLEMENTED for other methods."""
    name = service.name
    found: dict[str, Any] = {}
    for method, call in service.methods.items():
        found[method] = grpc.unary_unary_rpc_method_handler(
            _with_metadata(policy.answer_metadata, _aborting(governed(method, unary(call), policy))),
            request_deserializer=functools.partial(_parsed, proto.request_type(name, method)),
            response_serializer=_serialized,
        )
    for method, stream in service.streams.items():
        takes_stream = proto.takes_stream(name, method)
        handler = _with_metadata_first(policy.answer_metadata, _aborting(governed(method, streaming(stream), policy)))
        make = grpc.stream_stream_rpc_method_handler if takes_stream else grpc.unary_stream_rpc_method_handler
        found[method] = make(
            handler if takes_stream else _asked_once(handler),
            request_deserializer=memoryview,
        )
    return grpc.method_handlers_generic_handler(name, found)


def _aborting(answer: Answer) -> Handler:
    async def aborting(request: Any, context: Context) -> Any:
        try:
            return await answer(request, Call(list(context.invocation_metadata() or ()), context.write))
        except ServingError as error:
            await context.abort(grpc.StatusCode[grpc_status(error)], error.message)

    return aborting


def _with_metadata(metadata: tuple[tuple[str, str], ...], handler: Handler) -> Handler:
    """Wrap a call to send `metadata` with its one answer, or with its error, which stays one frame: trailers alone."""
    if not metadata:
        return handler

    async def with_metadata(request: Any, context: Context) -> Any:
        context.set_trailing_metadata(metadata)
        response = await handler(request, context)
        context.set_trailing_metadata(())
        await context.send_initial_metadata(metadata)
        return response

    return with_metadata


def _with_metadata_first(metadata: tuple[tuple[str, str], ...], handler: Handler) -> Handler:
    """Wrap a stream to send `metadata` before its first answer."""
    if not metadata:
        return handler

    async def with_metadata(request: Any, context: Context) -> Any:
        await context.send_initial_metadata(metadata)
        return await handler(request, context)

    return with_metadata


def _asked_once(handler: Handler) -> Handler:
    """Adapt a stream handler to a single request."""

    async def requests(request: memoryview) -> AsyncIterator[memoryview]:
        yield request

    async def asked_once(request: memoryview, context: Context) -> None:
        await handler(requests(request), context)

    return asked_once


def _parsed(kind: Any, content: bytes) -> Any:
    """Return the message, or the error to answer with, so that it takes the path of all other errors."""
    try:
        return parsed(kind, content)
    except ServingError as error:
        return error


def _serialized(message: Any) -> bytes:
    content: bytes = message.SerializeToString()
    return content
