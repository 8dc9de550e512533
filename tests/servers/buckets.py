"""Object stores of their own on free ports: moto, which speaks S3, and gcp-storage-emulator, which speaks Google's."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers.parts import free_port

_START_S = 60.0


@contextmanager
def s3() -> Iterator[str]:
    """Give the address of a running S3 server without buckets."""
    port = free_port()
    with _running([str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def gs() -> Iterator[str]:
    """Give the address of a running Google Cloud Storage emulator without buckets; it keeps all in memory."""
    port = free_port()
    program = str(Path(sys.executable).with_name("gcp-storage-emulator"))
    command = [program, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with _running(command, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
    )
    try:
        deadline = time.monotonic() + _START_S
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} on port {port} did not come up")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
