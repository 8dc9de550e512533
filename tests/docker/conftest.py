"""The images, built once for all tests that ask them something."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.engine import Engine, base, engine
from tests.servers.parts import MissingPartError, skip_or_fail

ROOT = Path(__file__).parents[2]
# `make test-images IMAGES="... runtime-cuda"` asks for other ones, as `make images` does.
BUILT = tuple(os.environ.get("IMAGES", "control-plane one-machine runtime-cpu").split())
_BUILD_S = 3600


@pytest.fixture(scope="session")
def docker() -> Iterator[Engine]:
    """Give a Docker engine that has the images of BUILT."""
    try:
        with engine() as running:
            options = f"--network host --build-arg BASE={base(running)}"
            subprocess.run(
                ["make", "images", f"IMAGES={' '.join(BUILT)}", f"DOCKER_BUILD_OPTIONS={options}"],
                cwd=ROOT,
                env=running.environment,
                check=True,
                timeout=_BUILD_S,
            )
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)
