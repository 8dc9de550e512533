"""The HTTP application before an engine of one identity model, without a socket."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.wire.message import Request, Response
from tests.serving_runtime import onnx_models


@contextmanager
def identity_application(
    runner: asyncio.Runner, root: Path, shape: Sequence[int | str] = ("N", 4)
) -> Iterator[V2Application]:
    """Serve the model `m`, x -> y, in `runner`'s loop."""
    onnx_models.identity(root / "m" / "1" / "model.onnx", shape=shape)

    async def start() -> Engine:
        engine = Engine([root], LoadSettings())
        assert await engine.load_all() == []
        return engine

    engine = runner.run(start())
    yield V2Application(engine)
    engine.close()


async def handled(
    application: V2Application,
    path: str,
    body: bytes,
    *,
    json_length: int | None = None,
    on_turn: Callable[[], None] | None = None,
) -> Response:
    """Return the answer to a POST; `on_turn` is called in each turn of the loop until it is there."""
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    application.handle(Request(b"POST", path.encode(), body, 0, json_length), answer.set_result)
    async with asyncio.timeout(60):
        while on_turn is not None and not answer.done():
            on_turn()
            await asyncio.sleep(0)
        return await answer
