"""What services are to the server: coroutines by method name, from messages to messages. Knows no grpcio."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

Method: TypeAlias = Callable[[Any], Awaitable[Any]]
"""From a request message to the answer's; raises ServingError."""

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes one serialized message; returns when the client's flow control has let it go."""

Metadata: TypeAlias = Mapping[str, str]

StreamMethod: TypeAlias = Callable[[AsyncIterator[tuple[Any, int]], Write, Metadata], Awaitable[None]]
"""Takes the request messages with their sizes in bytes, writes answers until it returns; raises ServingError."""


class Service(Protocol):
    """Some methods of one service of the .proto files.

    Attributes:
        name: the service's full name.
    """

    name: str

    @property
    def methods(self) -> Mapping[str, Method]: ...

    @property
    def streams(self) -> Mapping[str, StreamMethod]: ...

    def drain(self) -> None:
        """End streams that wait for nothing: the server is stopping."""
        ...
