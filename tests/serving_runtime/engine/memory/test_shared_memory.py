"""Shared memory of clients: what may be registered, and that nothing is read or written outside of it."""

import os
import uuid
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory as Segment
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.errors import InvalidArgument, NotFound, Unsupported
from serving_runtime.engine.memory import shared_memory
from serving_runtime.engine.memory.shared_memory import FOLDER, MAX_REGIONS, SharedMemory, Slice

pytestmark = pytest.mark.feature("E12")

SIZE = 4096


@pytest.fixture
def segment() -> Iterator[Segment]:
    made = Segment(create=True, size=SIZE, name=f"test-{uuid.uuid4().hex}")
    yield made
    made.close()
    made.unlink()


@pytest.fixture
def memory() -> SharedMemory:
    return SharedMemory(allowed=True, max_read_bytes=SIZE)


def test_a_tensor_goes_in_and_out(memory: SharedMemory, segment: Segment) -> None:
    memory.register("r", f"/{segment.name}", 1024, 2048)
    segment.buf[1024 + 8 : 1024 + 16] = np.array([1.5, 2.5], "f4").tobytes()
    assert np.frombuffer(memory.read(Slice("r", 8, 8)), "f4").tolist() == [1.5, 2.5]
    assert memory.write(Slice("r", 16, 100), np.array([[3, 4]], "i8")) == 16
    assert np.frombuffer(segment.buf[1024 + 16 : 1024 + 32], "i8").tolist() == [3, 4]
    assert bytes(memory.read(Slice("r", 2048, 0))) == b""
    assert memory.write(Slice("r", 2048, 0), np.empty((0, 2), "f4")) == 0


def test_status_and_unregister(memory: SharedMemory, segment: Segment) -> None:
    for name, offset in (("a", 0), ("b", 100)):
        memory.register(name, segment.name, offset, 10)
    assert [region._asdict() for region in memory.status()] == [
        {"name": "a", "key": segment.name, "offset": 0, "byte_size": 10},
        {"name": "b", "key": segment.name, "offset": 100, "byte_size": 10},
    ]
    assert [region.name for region in memory.status("b")] == ["b"]
    memory.unregister("a")
    memory.unregister("a")
    with pytest.raises(NotFound, match="region 'a' is not registered"):
        memory.status("a")
    memory.register("a", segment.name, 0, 20)
    memory.unregister()
    assert list(memory.status()) == []


@pytest.mark.parametrize(
    ("key", "offset", "byte_size", "sentence"),
    [
        pytest.param("/../etc/passwd", 0, 1, "must be a plain name", id="a path up"),
        pytest.param("/a/b", 0, 1, "must be a plain name", id="a path down"),
        pytest.param("//etc/passwd", 0, 1, "must be a plain name", id="a path from the root"),
        pytest.param("..", 0, 1, "must be a plain name", id="the folder above"),
        pytest.param("/.", 0, 1, "must be a plain name", id="the folder itself"),
        pytest.param("", 0, 1, "must be a plain name", id="nothing"),
        pytest.param("a\0b", 0, 1, "must be a plain name", id="a zero byte"),
        pytest.param("x" * 300, 0, 1, "must be a plain name", id="a long name"),
        pytest.param("/nobody-has-this", 0, 1, "cannot be opened: No such file", id="no such object"),
        pytest.param(None, 0, SIZE + 1, f"has {SIZE} bytes, which is less", id="larger than the object"),
        pytest.param(None, SIZE, 1, f"has {SIZE} bytes, which is less", id="behind the object"),
        pytest.param(None, 2**62, 2**62, f"has {SIZE} bytes, which is less", id="an overflow"),
        pytest.param(None, -1, 1, "must have an offset >= 0", id="before the object"),
        pytest.param(None, 0, 0, "byte_size >= 1", id="no bytes"),
    ],
)
def test_what_cannot_be_registered(
    memory: SharedMemory, segment: Segment, key: str | None, offset: int, byte_size: int, sentence: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        memory.register("r", segment.name if key is None else key, offset, byte_size)
    assert sentence in str(caught.value)
    assert list(memory.status()) == []


def test_neither_a_link_nor_a_pipe_is_followed(memory: SharedMemory, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link, pipe = FOLDER / f"test-link-{os.getpid()}", FOLDER / f"test-pipe-{os.getpid()}"
    link.symlink_to(secret)
    os.mkfifo(pipe)
    try:
        with pytest.raises(InvalidArgument, match="cannot be opened"):
            memory.register("r", link.name, 0, 6)
        with pytest.raises(InvalidArgument, match="is not a shared memory object"):
            memory.register("r", pipe.name, 0, 6)
    finally:
        link.unlink()
        pipe.unlink()


def test_names_are_taken_once_and_not_without_end(
    memory: SharedMemory, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_REGIONS >= 100
    monkeypatch.setattr(shared_memory, "MAX_REGIONS", 2)
    memory.register("r", segment.name, 0, 1)
    for name, sentence in (("r", "already registered"), ("", "must have 1 to"), ("x" * 256, "must have 1 to")):
        with pytest.raises(InvalidArgument, match=sentence):
            memory.register(name, segment.name, 0, 1)
    memory.register("s", segment.name, 0, 1)
    with pytest.raises(InvalidArgument, match="which is the limit"):
        memory.register("t", segment.name, 0, 1)


@pytest.mark.parametrize(
    "part", [Slice("r", 0, 101), Slice("r", 100, 1), Slice("r", -1, 1), Slice("r", 0, -1), Slice("r", 2**63, 1)]
)
def test_a_slice_beyond_its_region_is_neither_read_nor_written(
    memory: SharedMemory, segment: Segment, part: Slice
) -> None:
    memory.register("r", segment.name, 0, 100)
    for use in (memory.check, memory.read, lambda beyond: memory.write(beyond, b"x")):
        with pytest.raises(InvalidArgument, match="beyond the 100 bytes"):
            use(part)


def test_an_output_that_is_longer_than_its_slice_is_not_written(memory: SharedMemory, segment: Segment) -> None:
    memory.register("r", segment.name, 0, 100)
    with pytest.raises(InvalidArgument, match="7 bytes cannot hold an output of 8"):
        memory.write(Slice("r", 0, 7), bytes(range(8)))
    assert bytes(segment.buf[:8]) == bytes(8)


def test_more_than_a_request_may_bring_is_not_read(memory: SharedMemory) -> None:
    name = f"test-sparse-{uuid.uuid4().hex}"
    with (FOLDER / name).open("wb") as file:
        file.truncate(2**40)
    try:
        memory.register("r", name, 0, 2**40)
        with pytest.raises(InvalidArgument, match=f"larger than {SIZE} bytes"):
            memory.read(Slice("r", 0, 2**40))
        memory.read(Slice("r", 0, SIZE))
        with pytest.raises(InvalidArgument, match=f"larger than {SIZE} bytes"):
            memory.read(Slice("r", 0, SIZE), before_bytes=1)
    finally:
        (FOLDER / name).unlink()


def test_an_object_that_its_client_shrinks_is_told_as_such(memory: SharedMemory) -> None:
    file = FOLDER / f"test-shrinks-{uuid.uuid4().hex}"
    file.write_bytes(bytes(100))
    try:
        memory.register("r", file.name, 0, 100)
        os.truncate(file, 50)
        for use in (memory.read, lambda part: memory.write(part, bytes(100))):
            with pytest.raises(InvalidArgument, match="has become smaller"):
                use(Slice("r", 0, 100))
        assert file.stat().st_size == 50
        assert len(memory.read(Slice("r", 0, 50))) == 50
    finally:
        file.unlink()


def test_a_region_that_is_forgotten_is_closed(memory: SharedMemory, segment: Segment) -> None:
    def open_files() -> int:
        links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
        return links.count(f"/dev/shm/{segment.name}")

    before = open_files()
    memory.register("r", segment.name, 0, 100)
    assert open_files() == before + 1
    memory.unregister("r")
    assert open_files() == before


def test_nothing_is_possible_where_it_is_not_allowed(segment: Segment) -> None:
    memory = SharedMemory(allowed=False)
    for use in (
        lambda: memory.register("r", segment.name, 0, 1),
        memory.unregister,
        memory.status,
        lambda: memory.read(Slice("r", 0, 1)),
        lambda: memory.write(Slice("r", 0, 1), b""),
    ):
        with pytest.raises(Unsupported, match="--allow-client-shm=true"):
            use()
