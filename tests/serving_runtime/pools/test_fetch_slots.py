"""Slots of fetches: origins take turns, and one that hangs takes half of them."""

import asyncio
import hashlib
import time
from pathlib import Path

import pytest

from serving_runtime.artifacts.unpack import digest_of
from serving_runtime.pools import fetch_slots
from serving_runtime.pools.fetch_slots import FetchSlots, Transfer, origin_of
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place, Store, peer

MOUNTS = "disk / ext4 rw 0 0\nnas:/a /mnt/models nfs rw 0 0\nnas:/b /mnt/my\\040models nfs rw 0 0\n"


@pytest.mark.parametrize(
    ("uri", "origin"),
    [
        ("https://user:secret@Store.example:8443/a/m.onnx?x=1", "store.example:8443"),
        ("http://store.example/a", "store.example"),
        ("s3://bucket/a/b", "s3://bucket"),
        ("s3://http://127.0.0.1:9000/bucket/a", "127.0.0.1:9000"),
        ("gs://bucket/a", "gs://bucket"),
        ("/srv/models/a", "/"),
        ("/mnt/models/a/b", "/mnt/models"),
        ("/mnt/modelsother/a", "/"),
        ("/srv/../mnt/models/a", "/mnt/models"),
        ("/mnt/my models/a", "/mnt/my models"),
        ("http://[", ""),
        ("azure://x/y", ""),
    ],
)
def test_an_origin_is_a_host_a_bucket_or_a_file_system(uri: str, origin: str, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert origin_of(uri, tmp_path / "mounts") == origin


@pytest.mark.parametrize(("total", "of_one"), [(1, 1), (2, 1), (3, 1), (8, 4)])
async def test_an_origin_has_half_of_the_slots_and_at_least_one(total: int, of_one: int) -> None:
    slots = FetchSlots(total)
    waiting = [asyncio.create_task(slots.take(Transfer("slow"))) for _ in range(total + 1)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(task.done() for task in waiting) == of_one
    for task in waiting:
        task.cancel()


async def test_origins_take_turns() -> None:
    slots, order = FetchSlots(1), []

    async def fetch(name: str) -> None:
        transfer = Transfer(name[0])
        await slots.take(transfer)
        order.append(name)
        await asyncio.sleep(0)
        slots.release(transfer)

    await asyncio.gather(*[fetch(name) for name in ("a1", "a2", "a3", "b1", "c1", "b2")])
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2"]


async def test_a_queued_fetch_that_is_cancelled_takes_no_slot() -> None:
    slots, first, second = FetchSlots(1), Transfer("a"), Transfer("b")
    await slots.take(first)
    gone = asyncio.create_task(slots.take(second))
    await asyncio.sleep(0)
    gone.cancel()
    slots.release(first)
    await asyncio.wait({gone})
    await asyncio.wait_for(slots.take(first), 1)


def versions(store: Store, files: dict[str, bytes]) -> dict[str, dict[str, object]]:
    """Catalog entries of single files of a store, by name."""
    digests = {name: digest_of({"model.onnx": hashlib.sha256(content).hexdigest()}) for name, content in files.items()}
    return {name: pools.version(f"{store.url}/{name}/model.onnx", digest) for name, digest in digests.items()}


def test_a_store_that_hangs_takes_half_of_the_slots_and_its_requests_fail_in_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {f"s{number}": bytes([number]) * 10 for number in range(6)}
    quick = {f"q{number}": bytes([number]) * 20 for number in range(6)}
    with (
        Store({f"/{name}/model.onnx": content for name, content in slow.items()}) as hanging,
        Store({f"/{name}/model.onnx": content for name, content in quick.items()}) as sound,
    ):
        hanging.go_on.clear()
        for store, files in ((hanging, slow), (sound, quick)):
            for name, entry in versions(store, files).items():
                pools.write(place.catalog, f"a.{name}", {1: entry})
        with pools.fetcher_here(place, concurrency=4, patience=pools.ONE_TRY), peer(place) as runtime:
            for number in range(6):
                runtime.send(id=number, model=f"a.s{number}", version=1)
            pools.wait_until(lambda: len(hanging.asked) == 2, "two of four slots ask the store that hangs")
            for number in range(6):
                runtime.send(id=10 + number, model=f"a.q{number}", version=1)
            answers = [runtime.read() for _ in range(6)]
            assert sorted(answer["id"] for answer in answers if "folder" in answer) == [10, 11, 12, 13, 14, 15]
            with monkeypatch.context() as patch:
                patch.setattr(fetch_slots, "now", lambda: time.monotonic() + 31)
                for number in range(6):  # 4 of the first ones are queued, and fail with those
                    runtime.send(id=20 + number, model=f"a.s{number}", version=1)
                failed = [runtime.read()["error"] for _ in range(10)]
                hanging.go_on.set()  # those that were given up end
                failed += [runtime.read()["error"] for _ in range(2)]
            assert {error["kind"] for error in failed} == {"unavailable"}
            assert all("has sent nothing for 30 s (--fetch-stall-secs)" in error["message"] for error in failed)
            assert len(hanging.asked) == 2
            assert "folder" in runtime.ask(model="a.s5", version=1)  # the store is asked again
