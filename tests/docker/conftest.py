"""The images, built once for all tests that ask them something."""

from collections.abc import Iterator

import pytest

from tests.docker._support.built import BUILT, MORE, TAG, build
from tests.docker.engine import Engine, engine
from tests.servers.parts import MissingPartError, skip_or_fail


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """Give a Docker engine."""
    try:
        with engine() as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="session")
def docker(docker_engine: Engine) -> Engine:
    """Return a Docker engine that has the images of BUILT."""
    try:
        build(docker_engine, " ".join(BUILT), tag=TAG, more=MORE)
    except MissingPartError as missing:
        skip_or_fail(missing)
    return docker_engine
