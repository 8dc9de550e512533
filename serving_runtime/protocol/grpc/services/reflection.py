"""gRPC reflection service, by which clients without the .proto files (grpcurl, Postman) find the methods.

One class for both of its versions, `grpc.reflection.v1` and `v1alpha`, whose messages are alike.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from serving_runtime import proto
from serving_runtime.common.errors import Unavailable
from serving_runtime.protocol.grpc.methods import DirectMethod, Metadata, Method, StreamMethod, Write
from serving_runtime.protocol.grpc.policy import parsed

VERSIONS = ("v1", "v1alpha")
NAMES = frozenset(f"grpc.reflection.{version}.ServerReflection" for version in VERSIONS)

_NOT_FOUND = 5
_INVALID_ARGUMENT = 3
"""grpc.StatusCode."""

_SHOWN_CHARACTERS = 200


class ReflectionService:
    """Answers with the descriptors of the .proto files.

    Args:
        version: one of VERSIONS.
        services: names of all services of the server.
    """

    def __init__(self, version: str, services: Iterable[str]) -> None:
        package = f"grpc.reflection.{version}"
        self.name = f"{package}.ServerReflection"
        self._services = sorted(services)
        self._request = proto.message(f"{package}.ServerReflectionRequest")
        self._response = proto.message(f"{package}.ServerReflectionResponse")
        self._draining = asyncio.Event()
        self.methods: dict[str, Method] = {}
        self.direct: dict[str, DirectMethod] = {}
        self.streams: dict[str, StreamMethod] = {"ServerReflectionInfo": self.info}

    def drain(self) -> None:
        self._draining.set()

    async def info(self, requests: AsyncIterator[memoryview], write: Write, _metadata: Metadata) -> None:
        """Answer each request until the client ends its side; raises Unavailable when the server stops before."""
        stopping = asyncio.ensure_future(self._draining.wait())
        coming_ones = aiter(requests)
        try:
            while True:
                coming = asyncio.ensure_future(_next(coming_ones))
                await asyncio.wait((coming, stopping), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    raise Unavailable("the server is stopping")
                content = coming.result()
                if content is None:
                    return
                answer = self.answer(parsed(self._request, content))
                await write(answer.SerializeToString())
        finally:
            stopping.cancel()

    def answer(self, request: Any) -> Any:
        """Return the answer to one request, which may contain an error."""
        response = self._response(valid_host=request.host, original_request=request)
        asked = request.WhichOneof("message_request")
        try:
            match asked:
                case "list_services":
                    for name in self._services:
                        response.list_services_response.service.add(name=name)
                case "file_by_filename":
                    self._add_files(response, proto.files_from(request.file_by_filename))
                case "file_containing_symbol":
                    self._add_files(response, proto.files_with(request.file_containing_symbol))
                case "all_extension_numbers_of_type":
                    proto.message(request.all_extension_numbers_of_type)
                    found = response.all_extension_numbers_response
                    found.base_type_name = request.all_extension_numbers_of_type
                case "file_containing_extension":
                    raise KeyError("extension")  # the files define no extensions
                case _:
                    _refuse(response, _INVALID_ARGUMENT, "the request asks for nothing")
        except KeyError:
            named = str(getattr(request, str(asked))).strip()[:_SHOWN_CHARACTERS]
            _refuse(response, _NOT_FOUND, f"there is no {str(asked).replace('_', ' ')} '{named}'")
        return response

    @staticmethod
    def _add_files(response: Any, files: Iterable[bytes]) -> None:
        response.file_descriptor_response.file_descriptor_proto.extend(files)


async def _next(requests: AsyncIterator[memoryview]) -> memoryview | None:
    return await anext(requests, None)


def _refuse(response: Any, code: int, message: str) -> None:
    response.error_response.error_code = code
    response.error_response.error_message = message
