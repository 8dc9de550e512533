"""gRPC method types: coroutines by method name, from message to message. Knows no transport."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable

Method: TypeAlias = Callable[[Any], Awaitable[Any]]
"""From a request message to the answer's; raises ServingError."""

Answered: TypeAlias = tuple[bytes, int]
"""The answer's message, serialized, and the rows of the request."""

Reply: TypeAlias = Callable[[Answered | ServingError], None]
"""Takes the answer, or an error in its place."""

DirectMethod: TypeAlias = Callable[[memoryview, Reply, bytes], Cancellable]
"""A Method without a coroutine, for servers that need none: from serialized message and caller to serialized message.

Replies once, at once or later, unless it is cancelled; raises ServingError in place of that.
"""

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes one serialized message; returns when the client's flow control has accepted it."""

Metadata: TypeAlias = Mapping[str, str]

StreamMethod: TypeAlias = Callable[[AsyncIterator[memoryview], Write, Metadata], Awaitable[None]]
"""Takes the request messages, serialized; writes answers until it returns; raises ServingError."""


class Service(Protocol):
    """Some methods of one service of the .proto files.

    Attributes:
        name: the service's full name.
        direct: methods that also exist without a coroutine.
    """

    name: str

    @property
    def methods(self) -> Mapping[str, Method]: ...

    @property
    def direct(self) -> Mapping[str, DirectMethod]: ...

    @property
    def streams(self) -> Mapping[str, StreamMethod]: ...

    def drain(self) -> None:
        """End idle streams: the server is stopping."""
        ...
