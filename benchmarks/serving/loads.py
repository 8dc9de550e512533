"""The clients, on a core of their own and in a closed loop: wrk for HTTP, h2load for gRPC and for counted posts."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from benchmarks.serving.processes import CLIENT_CORE
from benchmarks.serving.requests import METHOD, Body

NO_HEADERS: Mapping[str, str] = {}

_UNITS_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


class Load(NamedTuple):
    """What a client saw: answered requests a second and in all, latencies in microseconds."""

    per_s: float
    count: int
    p50_us: float | None
    p99_us: float | None


def missing() -> list[str]:
    """Return the programs that are not there."""
    return [program for program in ("wrk", "h2load", "taskset") if shutil.which(program) is None]


def wrk(url: str, body: Body, connections: int, seconds: int, scratch: Path) -> Load:
    """Post the same body by so many connections; raises RuntimeError when an answer is not right."""
    script = scratch / "body.lua"
    headers = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in body.headers.items())
    script.write_text(f'wrk.method = "POST"\n{headers}wrk.body = {_quoted(body.content)}\n')
    options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout=60", "--latency", "-s", str(script)]
    output = _run("wrk", *options, url)
    count, per_s = re.search(r"(\d+) requests in", output), re.search(r"Requests/sec:\s+([\d.]+)", output)
    if "Non-2xx" in output or not (count and per_s and int(count[1])):
        raise RuntimeError(f"{url} was not answered as it should:\n{output}")
    return Load(float(per_s[1]), int(count[1]), _percentile(output, 50), _percentile(output, 99))


def posts(url: str, body: Body, connections: int, count: int, scratch: Path) -> Load:
    """Post the same body so many times, and wait for every answer; raises RuntimeError when one is not right.

    Where an answer takes long, those that a clock would cut off are a part of the whole that counts.
    """
    file, log = scratch / "body", scratch / "posts"
    file.write_bytes(body.content)
    log.unlink(missing_ok=True)
    options = ["--h1", "-t1", f"-c{connections}", f"-n{count}", f"-d{file}", f"--log-file={log}"]
    output = _run("h2load", *options, *(f"-H{name}: {value}" for name, value in body.headers.items()), url)
    if f" {count} 2xx," not in output:
        raise RuntimeError(f"{url} did not answer {count} requests as it should:\n{output}")
    return counted(log.read_text())


def counted(log: str) -> Load:
    """Return what h2load's log tells: the start, the status and the microseconds of every request. Pure."""
    rows = [(int(start_us), int(took_us)) for start_us, _, took_us in map(str.split, log.splitlines())]
    seconds = (max(start + took for start, took in rows) - min(start for start, _ in rows)) / 1e6
    each = quantiles((took for _, took in rows), n=100)
    return Load(len(rows) / seconds, len(rows), each[49], each[98])


def h2load(
    port: int,
    message: bytes,
    connections: int,
    streams: int,
    seconds: int,
    scratch: Path,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
    latencies: bool = False,
) -> Load:
    """Call ModelInfer with the same message by so many connections of so many streams; raises RuntimeError.

    Args:
        headers: beside those that gRPC asks for.
        latencies: whether the client takes note of each call's, which costs it some of its core.
    """
    file, log = scratch / "message", scratch / "calls"
    file.write_bytes(message)
    log.unlink(missing_ok=True)
    sent = {"content-type": "application/grpc", "te": "trailers", **headers}
    options = ["-t1", f"-c{connections}", f"-m{streams}", f"-D{seconds}", f"-d{file}"]
    options += [f"-H{name}: {value}" for name, value in sent.items()]
    options += [f"--log-file={log}"] if latencies else []
    output = _run("h2load", *options, f"http://127.0.0.1:{port}{METHOD}")
    found = re.search(r"(\d+) succeeded, (\d+) failed", output)
    if found is None or int(found[2]) or not int(found[1]):
        raise RuntimeError(f"port {port} did not answer every call:\n{output}")
    told = counted(log.read_text()) if latencies else None
    p50, p99 = (told.p50_us, told.p99_us) if told is not None else (None, None)
    return Load(int(found[1]) / seconds, int(found[1]), p50, p99)


def _run(*command: str) -> str:
    pinned = ["taskset", "-c", CLIENT_CORE, *command]
    found = subprocess.run(pinned, capture_output=True, text=True, check=False, timeout=300)
    if found.returncode:
        raise RuntimeError(f"{command[0]} ended with {found.returncode}: {(found.stderr or found.stdout).strip()}")
    return found.stdout


def _quoted(content: bytes) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in content) + '"'


def _percentile(output: str, percent: int) -> float | None:
    found = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s)", output, re.MULTILINE)
    return float(found[1]) * _UNITS_US[found[2]] if found else None
