"""What is copied out of clients' shared memory counts until its tensors are freed."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.engine.memory.shared_memory import SharedMemory, Slice
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES, RequestMemory, TooMuchUnfinished
from serving_runtime.protocol.tensors import binary

SIZE = 1024 * 1024
LIMIT = 8 * SIZE
MOST = 7  # an eighth of the limit is kept for small requests


@pytest.fixture
def memory() -> RequestMemory:
    return RequestMemory(LIMIT)


@pytest.fixture
def region(memory: RequestMemory) -> Iterator[SharedMemory]:
    path = Path("/dev/shm", f"fairlead-copies-{os.getpid()}")
    path.write_bytes(bytes(2 * LIMIT))
    try:
        shared = SharedMemory(allowed=True, max_read_bytes=2 * LIMIT)
        shared.copies = memory.copies
        shared.register("r", path.name, 0, 2 * LIMIT)
        yield shared
    finally:
        path.unlink()


def read(region: SharedMemory, size_bytes: int = SIZE, *, datatype: str = "UINT8", before_bytes: int = 0) -> Array:
    shape = (size_bytes // (DATATYPES[datatype].size_bytes or 4),)
    decode = binary.decoder(DATATYPES[datatype], shape, "x")
    return region.tensor(Slice("r", 0, size_bytes), decode, before_bytes=before_bytes)


@pytest.mark.parametrize("datatype", ["FP32", "BOOL", "BYTES"])
def test_a_tensor_counts_until_it_and_its_views_are_freed(
    memory: RequestMemory, region: SharedMemory, datatype: str
) -> None:
    view = read(region, datatype=datatype)[1:].reshape(-1, 1)
    assert (memory.copies.held_bytes, memory.limit_bytes) == (SIZE, LIMIT - SIZE)
    del view
    assert (memory.copies.held_bytes, memory.limit_bytes, memory.held_bytes) == (0, LIMIT, 0)


def test_copies_beyond_the_limit_are_refused(memory: RequestMemory, region: SharedMemory) -> None:
    kept = [read(region) for _ in range(MOST)]
    with pytest.raises(TooMuchUnfinished, match=f"hold {MOST * SIZE} bytes, and {LIMIT} are allowed"):
        read(region)
    memory.held_bytes += 1000  # small requests have room beside them
    memory.check(100)
    memory.held_bytes -= 1000
    kept.pop()
    assert read(region).nbytes == SIZE


def test_what_arrives_has_no_room_beside_copies(memory: RequestMemory, region: SharedMemory) -> None:
    memory.held_bytes = SIZE
    kept = [read(region) for _ in range(MOST - 1)]
    assert len(kept) == MOST - 1
    assert memory.lacks(SIZE)
    with pytest.raises(TooMuchUnfinished):
        read(region)


def test_one_that_is_alone_is_never_refused_for_its_size(memory: RequestMemory, region: SharedMemory) -> None:
    memory.held_bytes = LARGE_REQUEST_BYTES  # its own message
    first = read(region, LIMIT)
    second = read(region, LIMIT, before_bytes=LIMIT)
    assert memory.limit_bytes > memory.held_bytes
    with pytest.raises(TooMuchUnfinished):
        read(region)
    del first, second
    assert memory.copies.held_bytes == 0


def test_what_cannot_be_decoded_counts_no_longer(memory: RequestMemory, region: SharedMemory) -> None:
    with pytest.raises(InvalidArgument, match="unexpected byte size"):
        region.tensor(Slice("r", 0, SIZE), binary.decoder(DATATYPES["FP32"], (1,), "x"))
    with pytest.raises(InvalidArgument, match="reach beyond"):
        read(region, 4 * LIMIT)
    assert memory.copies.held_bytes == 0


def test_threads_count_together(memory: RequestMemory, region: SharedMemory) -> None:
    def work() -> None:
        for _ in range(300):
            read(region, 4096)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert (memory.copies.held_bytes, memory.limit_bytes) == (0, LIMIT)
    assert np.array_equal(read(region, 4), [0, 0, 0, 0])
