"""Real server processes for tests."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 120.0


@dataclass(frozen=True)
class ServerProcess:
    """A running `python -m serving_runtime`."""

    process: "subprocess.Popen[str]"
    http: int
    grpc: int = 0
    metrics: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}"

    def metrics_page(self) -> str:
        """Return the metrics page; by urllib, because httpx takes longer to begin than some requests to finish."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as answer:
            content: bytes = answer.read()
        return content.decode()

    def metric(self, *names: str, **labels: str) -> float:
        """Return the sum of the named metrics' samples that carry the labels, all from one page."""
        total = 0.0
        for line in self.metrics_page().splitlines():
            series, _, value = line.rpartition(" ")
            wanted = all(f'{key}="{label}"' in series for key, label in labels.items())
            if series.partition("{")[0] in names and wanted:
                total += float(value)
        return total

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def command(repository: Path, *flags: str) -> list[str]:
    """Return the command line of a server on free local ports."""
    addresses = ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"]
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    return [sys.executable, "-m", "serving_runtime", f"--model-repository={repository}", *addresses, *ports, *flags]


@contextmanager
def server(repository: Path, *flags: str, scratch: Path) -> Iterator[ServerProcess]:
    """Run a server until the block ends; raises with its output when it does not come up."""
    port_file = scratch / f"ports-{time.monotonic_ns()}.json"
    arguments = command(repository, f"--port-file={port_file}", *flags)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            deadline = time.monotonic() + START_S
            while not port_file.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise RuntimeError(f"the server did not come up: {process.communicate()[0]}")
                time.sleep(0.01)
            yield ServerProcess(process, **json.loads(port_file.read_text()))
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()
