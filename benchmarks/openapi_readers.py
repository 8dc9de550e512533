"""What readers of the OpenAPI document cost other clients of the control plane.

    python -m benchmarks.openapi_readers [--readers 16] [--seconds 20]
    FAIRLEAD_ANONYMOUS_REQUESTS_PER_MINUTE=600 python -m benchmarks.openapi_readers    # with the default limit

One control plane on SQLite, as `fairlead up` starts it. One client lists models with a token, over one connection,
first alone and then beside anonymous clients in another process that fetch the document in a loop. Prints its median,
p99 and slowest response, and how many documents were read.
"""

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.serving.processes import free_ports

_ROOT = Path(__file__).resolve().parents[1]
_START_S = 120.0

READERS = """
import http.client, sys, threading, time
port, readers, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
end, counts = time.monotonic() + seconds, [0] * readers
def read(index):
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("GET", "/api/v1/schema/")
            response = connection.getresponse()
            response.read()
            counts[index] += response.status == 200
        finally:
            connection.close()
threads = [threading.Thread(target=read, args=(index,)) for index in range(readers)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(counts))
"""


@contextmanager
def control_plane(home: Path) -> Iterator[tuple[int, str]]:
    """Run a control plane whose state is in `home`; yields its port and a token."""
    environment = {
        "FAIRLEAD_ANONYMOUS_REQUESTS_PER_MINUTE": "0",
        **os.environ,
        "PYTHONPATH": str(_ROOT / "platform"),
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_HOME": str(home),
        "FAIRLEAD_SECRET_KEY": "of-this-benchmark-alone-" * 2,
        # The client that measures asks more often than any real one.
        "FAIRLEAD_TOKEN_REQUESTS_PER_MINUTE": "0",
    }
    token = home / "token"
    prepare = [sys.executable, "-m", "django", "prepare_home", "--token", str(token)]
    subprocess.run(prepare, env=environment, cwd=home, check=True, capture_output=True)
    (port,) = free_ports(1)
    serve = [sys.executable, "-m", "uvicorn", "control_plane.asgi:application", "--host", "127.0.0.1"]
    serve += ["--port", str(port), "--loop", "uvloop", "--no-access-log", "--log-level", "critical"]
    web = subprocess.Popen(serve, env=environment, cwd=home)
    try:
        _await(port)
        yield port, token.read_text().strip()
    finally:
        web.terminate()
        web.wait(timeout=30)


def delays(port: int, token: str, seconds: float) -> list[float]:
    """Return how long each of one client's requests took, in ms."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        connection.request("GET", "/api/v1/models", headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        found.append((time.perf_counter() - began) * 1000)
        time.sleep(0.01)
    return found


def line(what: str, found: list[float]) -> str:
    """Return a row of the table."""
    p99 = statistics.quantiles(found, n=100)[98] if len(found) > 1 else found[0]
    return f"| {what} | {len(found)} | {statistics.median(found):.1f} | {p99:.1f} | {max(found):.1f} |"


def _await(port: int) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder)) as (port, token):
        delays(port, token, 2.0)  # the first requests import and connect
        print("| other clients | requests | median ms | p99 ms | slowest ms |\n| --- | --- | --- | --- | --- |")
        print(line("none", delays(port, token, asked.seconds)))
        command = [sys.executable, "-c", READERS, str(port), str(asked.readers), str(asked.seconds)]
        readers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        found = delays(port, token, asked.seconds)
        read = int(readers.communicate()[0])
        print(line(f"{asked.readers} readers of the document, {read / asked.seconds:.1f} a second", found))


if __name__ == "__main__":
    main()
