"""Folders of a pool."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place.below(tmp_path)
    yield found
    pools.remove(found)
