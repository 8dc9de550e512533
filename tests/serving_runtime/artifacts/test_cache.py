"""Pods that share a cache fetch a model once, over whatever happens to one of them."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serving_runtime.artifacts.cache import Cache, CacheUnusableError
from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.fetch_artifact import Order
from serving_runtime.artifacts.web import WebFile
from tests._support.small_disk import small_disk
from tests.servers.broken_web import Served, serving
from tests.serving_runtime._support.digests import digest_for, left

QUICK = Patience(tries=3, first_s=0.001, longest_s=0.001)
MODELS = [os.urandom(100_000) for _ in range(4)]
DIGESTS = [digest_for({"model.onnx": model}) for model in MODELS]


@pytest.fixture
def server() -> Iterator[Served]:
    with serving(MODELS[0]) as served:
        yield served


def order(served: Served, number: int = 0) -> Order:
    served.content = MODELS[number]
    return Order(DIGESTS[number], lambda: [WebFile(served.url)], lambda _line: None, QUICK)


def test_the_second_pod_asks_nobody(server: Served, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    for pod in ("one", "two"):
        cache.copy(order(server), tmp_path / pod)
        assert (tmp_path / pod / "model.onnx").read_bytes() == MODELS[0]
    assert len(server.asked) == 1


def test_pods_that_come_at_once_fetch_it_once(server: Served, tmp_path: Path) -> None:
    server.content = MODELS[0]
    command = [sys.executable, "-m", "serving_runtime", "prepare", f"--registry={server.url}", f"--digest={DIGESTS[0]}"]
    command += ["--name=digits", "--version=1", f"--cache={tmp_path / 'cache'}"]
    pods = [
        subprocess.Popen([*command, f"--model-repository={tmp_path / str(pod)}"], stderr=subprocess.DEVNULL)
        for pod in range(3)
    ]
    assert [pod.wait(timeout=300) for pod in pods] == [0, 0, 0]
    assert [left(tmp_path / str(pod)) for pod in range(3)] == [["digits/1/model.onnx"]] * 3
    assert len(server.asked) == 1


def test_what_was_not_wanted_for_longest_goes_first(server: Served, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 250_000)  # room for two
    for turn, number in enumerate((0, 1, 0, 2)):
        cache.copy(order(server, number), tmp_path / f"pod-{turn}")
        for folder in (tmp_path / "cache").iterdir():  # as long ago as turns, since clocks of disks are coarse
            if not folder.name.startswith("."):
                age = turn if folder.name == DIGESTS[number][7:] else int(folder.stat().st_mtime)
                os.utime(folder, (age, age))
    kept = {folder.name for folder in (tmp_path / "cache").iterdir() if not folder.name.startswith(".")}
    assert kept == {DIGESTS[0][7:], DIGESTS[2][7:]}


def test_a_disk_that_is_smaller_than_the_limit_keeps_the_newest(server: Served, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        cache = Cache(disk / "cache", 1 << 20)
        for number in (0, 1, 2):
            cache.copy(order(server, number), tmp_path / f"pod-{number}")
        kept = [digest[7:] for digest in DIGESTS if (disk / "cache" / digest[7:]).is_dir()]
        assert DIGESTS[2][7:] in kept
        assert DIGESTS[0][7:] not in kept


def test_a_model_that_is_larger_than_the_cache_leaves_nothing_in_it(server: Served, tmp_path: Path) -> None:
    with pytest.raises(CacheUnusableError, match="100000 bytes or more, 1000 are allowed"):
        Cache(tmp_path / "cache", 1000).copy(order(server), tmp_path / "pod")
    assert [name for name in left(tmp_path / "cache") if not name.startswith(".locks/")] == []
    assert not (tmp_path / "pod").exists()


def test_a_copy_that_somebody_changed_is_fetched_anew(server: Served, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    cache.copy(order(server), tmp_path / "one")
    (tmp_path / "cache" / DIGESTS[0][7:] / "model.onnx").write_bytes(b"broken by a disk")
    cache.copy(order(server), tmp_path / "two")
    assert (tmp_path / "two" / "model.onnx").read_bytes() == MODELS[0]
    assert len(server.asked) == 2


def test_a_start_needs_no_source_where_the_cache_has_the_model(server: Served, tmp_path: Path) -> None:
    Cache(tmp_path / "cache", 1 << 20).copy(order(server), tmp_path / "pod")
    arguments = [f"--digest={DIGESTS[0]}", "--name=digits", "--version=1", f"--cache={tmp_path / 'cache'}"]
    away = ["--registry=http://127.0.0.1:1/", f"--token-file={tmp_path / 'no-token'}"]
    command = [sys.executable, "-m", "serving_runtime", "prepare", *away, *arguments]
    subprocess.run([*command, f"--model-repository={tmp_path / 'repository'}"], check=True, capture_output=True)
    assert (tmp_path / "repository/digits/1/model.onnx").read_bytes() == MODELS[0]


def plant_a_link_out(there: Path, secret: Path) -> None:
    (there / "model.onnx").unlink()
    (there / "model.onnx").symlink_to(secret)


def plant_a_folder_of_links(there: Path, secret: Path) -> None:
    there.rename(there.with_name("moved"))
    there.symlink_to(secret.parent)


def plant_a_pipe(there: Path, secret: Path) -> None:
    (there / "model.onnx").unlink()
    os.mkfifo(there / "model.onnx")


@pytest.mark.parametrize("plant", [plant_a_link_out, plant_a_folder_of_links, plant_a_pipe])
def test_what_another_pod_plants_in_the_cache_is_neither_served_nor_followed(
    server: Served, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    cache, secret = Cache(tmp_path / "cache", 1 << 20), tmp_path / "secrets" / "token"
    secret.parent.mkdir()
    secret.write_text("a token of the pod that copies")
    cache.copy(order(server), tmp_path / "one")
    plant(tmp_path / "cache" / DIGESTS[0][7:], secret)
    cache.copy(order(server), tmp_path / "two")
    assert left(tmp_path / "two") == ["model.onnx"]
    assert (tmp_path / "two" / "model.onnx").read_bytes() == MODELS[0]
    assert secret.read_text() == "a token of the pod that copies"
    assert len(server.asked) == 2


def test_links_beside_a_models_files_are_left_out_of_the_copy(server: Served, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    cache.copy(order(server), tmp_path / "one")
    (tmp_path / "cache" / DIGESTS[0][7:] / "1").symlink_to("/etc")
    cache.copy(order(server), tmp_path / "two")
    assert left(tmp_path / "two") == ["model.onnx"]


def test_a_pod_that_was_killed_holds_nobody_up_and_what_it_fetched_counts(server: Served, tmp_path: Path) -> None:
    holder = (
        "import fcntl, os, sys, time\n"
        "handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(600)\n"
    )
    cache = tmp_path / "cache"
    part = cache / ".incoming" / DIGESTS[0][7:] / "parts" / "artifact"
    lock = cache / ".locks" / DIGESTS[0][7:]
    for path, content in ((part, MODELS[0][:40_000]), (lock, b"")):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    process = subprocess.Popen([sys.executable, "-c", holder, str(lock)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        waiting: list[str] = []
        wanted = Order(DIGESTS[0], lambda: [WebFile(server.url)], waiting.append, QUICK)
        thread = threading.Thread(target=lambda: Cache(cache, 1 << 20).copy(wanted, tmp_path / "pod"))
        thread.start()
        deadline = time.monotonic() + 60
        while not any("waiting for another pod" in line for line in waiting):
            assert time.monotonic() < deadline, waiting
            time.sleep(0.01)
        assert server.asked == []
    finally:
        process.kill()
        process.communicate()
    thread.join(timeout=60)
    assert [asked for asked, _ in server.asked] == ["bytes=39999-"]
    assert (tmp_path / "pod" / "model.onnx").read_bytes() == MODELS[0]


def test_one_that_is_being_copied_is_not_removed(server: Served, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 150_000)
    cache.copy(order(server, 0), tmp_path / "one")
    with (tmp_path / "cache" / ".locks" / DIGESTS[0][7:]).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        cache.copy(order(server, 1), tmp_path / "two")
        assert (tmp_path / "cache" / DIGESTS[0][7:]).is_dir()
    cache.copy(order(server, 1), tmp_path / "three")
    assert not (tmp_path / "cache" / DIGESTS[0][7:]).exists()


def test_what_a_pod_left_half_fetched_goes_after_a_day(server: Served, tmp_path: Path) -> None:
    old = tmp_path / "cache" / ".incoming" / ("0" * 64) / "parts" / "artifact"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"half")
    for path in (old, old.parent, old.parent.parent):
        os.utime(path, (0, 0))
    Cache(tmp_path / "cache", 1 << 20).copy(order(server), tmp_path / "pod")
    assert not old.parent.parent.exists()


def test_a_cache_that_cannot_be_written_is_done_without(server: Served, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    server.content = MODELS[0]
    arguments = [f"--registry={server.url}", f"--digest={DIGESTS[0]}", "--name=digits", "--version=1"]
    command = [sys.executable, "-m", "serving_runtime", "prepare", *arguments, f"--cache={tmp_path / 'cache'}"]
    done = subprocess.run([*command, f"--model-repository={tmp_path / 'pod'}"], check=True, capture_output=True)
    assert b"the cache cannot be used" in done.stderr
    assert left(tmp_path / "pod") == ["digits/1/model.onnx"]
