"""Processor time of two servers for a request, asked by turns."""

import json
import socket
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np


def processor_s(pid: int) -> float:
    """Return the processor time that a process has taken, in the scheduler's own nanoseconds for its threads."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def by_http(port: int, path: str, count: int) -> None:
    """Send requests one after the other over one connection."""
    x = {"name": "x", "datatype": "FP32", "shape": [1, 64], "parameters": {"binary_data_size": 256}}
    text = json.dumps({"inputs": [x], "parameters": {"binary_data_output": True}}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(text)}\r\n"
    request = f"{head}Content-Length: {len(text) + 256}\r\n\r\n".encode() + text + np.ones(64, "f4").tobytes()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        answers = sock.makefile("rb")
        for _ in range(count):
            sock.sendall(request)
            status, length = answers.readline(), 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if b" 200 " not in status:
                raise RuntimeError(answers.read(length).decode())
            answers.read(length)


def measured(
    servers: dict[str, tuple[int, Callable[[int], None]]], rounds: int, requests: int
) -> dict[str, list[float]]:
    """Return the microseconds of processor time for a request, by server and round."""
    found: dict[str, list[float]] = {name: [] for name in servers}
    for turn in range(-1, rounds):  # the first warms up
        for name in sorted(servers, reverse=bool(turn % 2)):
            pid, ask = servers[name]
            before = processor_s(pid)
            ask(requests)
            if turn >= 0:
                found[name].append((processor_s(pid) - before) / requests * 1e6)
    return found


def report(what: str, found: dict[str, list[float]]) -> None:
    """Print the medians, and of the rounds' ratios, second to first server, the median and the outermost."""
    first, second = found.values()
    ratios = [other / one for one, other in zip(first, second, strict=True)]
    each = ", ".join(f"{name} {statistics.median(values):.1f} us" for name, values in found.items())
    print(f"{what}: {each}; ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
