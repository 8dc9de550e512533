"""A disk so small that a test can fill it: a tmpfs, which takes root to mount."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size_kib: int) -> Iterator[Path]:
    """Mount a disk at `place`, which is made where it is missing; skip the test where nothing may be mounted."""
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here, which takes root: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Fill the disk, and take again what others give back, until the end of the block."""
    stop, full = threading.Event(), threading.Event()

    def fill() -> None:
        with (disk / "filler").open("ab", buffering=0) as file:
            while not stop.is_set():
                try:
                    file.write(bytes(1 << 16))
                except OSError:
                    full.set()
                    stop.wait(0.01)

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        assert full.wait(30)
        yield
    finally:
        stop.set()
        filling.join()
        (disk / "filler").unlink()
