"""A Prometheus of its own on a free port, from the machine's package, which scrapes what it is given."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.parts import free_port, program

_START_S = 60.0


@dataclass(frozen=True)
class Discovery:
    """Where the server asks for its targets, and with which token, which the targets get too (http_sd_config)."""

    url: str
    token_file: Path


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    port: int

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of an instant query."""
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{asked}", timeout=10) as answer:
            content: dict[str, Any] = json.load(answer)
        result: list[dict[str, Any]] = content["data"]["result"]
        return result

    def number(self, expression: str) -> float:
        """Return the one value of a query, 0 where there is none yet."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else 0.0


@contextmanager
def prometheus(
    targets: Sequence[str],
    scratch: Path,
    *,
    discovery: Discovery | None = None,
    jobs: Sequence[dict[str, Any]] = (),
    rules: Sequence[dict[str, Any]] = (),
) -> Iterator[Prometheus]:
    """Run a Prometheus that takes native histograms until the block ends; raises MissingPartError.

    Args:
        jobs: further scrape configurations.
        rules: groups of rules.
    """
    binary = program("prometheus", "prometheus", [Path("/usr/bin"), Path("/usr/local/bin")])
    port = free_port()
    config = scratch / "prometheus.yml"
    (scratch / "rules.yml").write_text(json.dumps({"groups": list(rules)}))  # JSON is YAML
    config.write_text(json.dumps(_config(targets, discovery, jobs)))
    command = [
        str(binary),
        f"--config.file={config}",
        f"--storage.tsdb.path={scratch / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=native-histograms",
        "--log.level=error",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + _START_S
            while not _is_ready(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"prometheus on port {port} did not come up")
                time.sleep(0.05)
            yield Prometheus(port)
        finally:
            process.kill()
            process.wait()


def _config(targets: Sequence[str], discovery: Discovery | None, jobs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    job: dict[str, Any] = {"job_name": "runtime", "scrape_interval": "500ms", "scrape_timeout": "500ms"}
    job["static_configs"] = [{"targets": list(targets)}]
    if discovery is not None:
        authorization = {"type": "Bearer", "credentials_file": str(discovery.token_file)}
        job["http_sd_configs"] = [{"url": discovery.url, "refresh_interval": "1s", "authorization": authorization}]
        job["authorization"] = authorization
    return {"rule_files": ["rules.yml"], "scrape_configs": [job, *jobs]}


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
