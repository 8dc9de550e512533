"""Counts requests that their protocol refuses, such as data that do not fit their shape, with the model they name.

The model counts requests that reach it. Requests to an absent model are not counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from serving_runtime.common.errors import NotFound, ServingError, Unavailable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.scheduler import counting


def count(engine: Engine, name: str, version: str, error: ServingError) -> None:
    """Count one request that failed before the engine was called."""
    with suppress(NotFound, Unavailable):
        counting.refuse(engine.servable(name, version).statistics, error.reason)


@contextmanager
def counted(engine: Engine, name: str, version: str) -> Iterator[None]:
    """Count the request if it is refused within: not around `engine.infer`, which counts its own refusals."""
    try:
        yield
    except ServingError as error:
        count(engine, name, version, error)
        raise
