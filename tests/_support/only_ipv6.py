"""A network of IPv6 alone, for tests: a namespace whose loopback device has no address of IPv4.

`python -m tests._support.only_ipv6 URL... -- COMMAND` runs a server's command, asks each URL until it answers, prints
status and text of all as JSON, and ends the server. A URL grpc://HOST:PORT is asked for its health.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import grpc
import httpx

from tests.servers.parts import MissingPartError, skip_or_fail

POD_IP = "fd00::7"
_ROOT = Path(__file__).parents[2]
_MADE = f"ip link set lo up && ip -4 address flush dev lo && ip -6 address add {POD_IP}/128 dev lo nodad"
_START_S = 60.0


def answers(urls: Sequence[str], command: Sequence[str], environment: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Return status and text at each URL of a server that runs in such a network; skips where none can be made."""
    namespace = ["unshare", "--net", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))]
    inside = [*namespace, "sh", "-c", f'{_MADE} && exec "$@"', "sh"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        skip_or_fail(MissingPartError("this machine makes no network namespaces with IPv6 (util-linux, iproute2)"))
    asking = [sys.executable, "-m", "tests._support.only_ipv6", *urls, "--", *command]
    done = subprocess.run(
        [*inside, *asking], env=dict(environment), cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {url: (status, text) for url, (status, text) in json.loads(done.stdout).items()}


def main() -> None:
    """Run the server, ask, and print what it answered."""
    end = sys.argv.index("--")
    with subprocess.Popen(sys.argv[end + 1 :], stdout=sys.stderr) as server:
        try:
            deadline = time.monotonic() + _START_S
            json.dump({url: _answer(url, server, deadline) for url in sys.argv[1:end]}, sys.stdout)
        finally:
            server.kill()


def _answer(url: str, server: "subprocess.Popen[bytes]", deadline: float) -> tuple[int, str]:
    while True:
        try:
            if url.startswith("grpc://"):
                with grpc.insecure_channel(url.removeprefix("grpc://")) as channel:
                    check = channel.unary_unary("/grpc.health.v1.Health/Check")
                    return HTTPStatus.OK, check(b"", timeout=5).hex()
            answer = httpx.get(url, timeout=10, trust_env=False)
        except (httpx.TransportError, grpc.RpcError) as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{url} does not answer: {error}") from error
            time.sleep(0.05)
        else:
            return answer.status_code, answer.text


if __name__ == "__main__":
    main()
