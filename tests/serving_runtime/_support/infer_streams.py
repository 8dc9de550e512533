"""One call of many inference requests, without a connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from serving_runtime import proto
from serving_runtime.protocol.grpc.services.stream_infer import InferStream

_Answer = proto.message("inference.ModelStreamInferResponse")


async def answers(call: InferStream, *contents: memoryview, within_s: float) -> list[Any]:
    """Return what is answered to the messages of a call; raises TimeoutError."""
    written = []

    async def requests() -> AsyncIterator[memoryview]:
        for content in contents:
            yield content

    async def write(content: bytes) -> None:
        written.append(_Answer.FromString(content))

    await asyncio.wait_for(call.run(requests(), write), within_s)
    return written
