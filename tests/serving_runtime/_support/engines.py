"""Asking an engine in tests."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine

EXPLICIT = Control(mode=ControlMode.EXPLICIT)
POLL = Control(mode=ControlMode.POLL)


@asynccontextmanager
async def engine_of(*roots: Path, control: Control = EXPLICIT, **settings: object) -> AsyncIterator[Engine]:
    """An engine that has loaded what its control mode says; what fails is in its index."""
    engine = Engine(roots, LoadSettings(**settings), control)  # type: ignore[arg-type]
    await engine.load_all()
    try:
        yield engine
    finally:
        engine.close()


async def infer(engine: Engine, model: str, version: str = "", *, rows: int = 1, width: int = 4) -> Outcome:
    """Send ones [rows, width] as input x and return the outcome."""
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    x = Tensor("x", DATATYPES["FP32"], np.ones((rows, width), "f4"))
    try:
        engine.infer(InferRequest(model, version, (x,)), answer.set_result)
    except ServingError as error:
        return error
    return await asyncio.wait_for(answer, 20)


def output(outcome: Outcome, name: str = "y") -> Array:
    assert isinstance(outcome, InferResponse), outcome
    return next(tensor.array for tensor in outcome.outputs if tensor.name == name)


async def states(engine: Engine) -> dict[tuple[str, str], tuple[str, str]]:
    """Return state and reason of every line of the index."""
    index = await engine.index(ready_only=False)
    return {(entry.name, entry.version): (entry.state, entry.reason) for entry in index}


async def until(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        await asyncio.sleep(0.002)
