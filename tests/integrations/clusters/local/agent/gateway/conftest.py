"""The gateway that these tests send requests to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests._support.gateway import Gateway, running_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path) as running:
        yield running
