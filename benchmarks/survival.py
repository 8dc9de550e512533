"""What clients notice when the local agent or the gateway is killed.

    python -m benchmarks.survival [--services 8] [--rounds 5]

Starts `fairlead up` with as many services, each one replica of the demo's small model, and sends each two requests a
second. In each round it kills the agent with SIGKILL and waits until another looks after the services, then it kills
Envoy, while one client asks for one service again and again on new connections: its gap is the time from the kill to
the first answer.
"""

import argparse
import http.client
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.many.fleet import Fleet, fleet
from benchmarks.many.requests import Traffic, traffic
from fairlead_cli.demo.story import NAMESPACE

_SERVICES, _ROUNDS = 8, 5
_WITHIN_S, _SERVES_S, _LOOK_S = 60.0, 8.0, 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=_SERVICES, help=f"how many, {_SERVICES} by default")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"how often each is killed, {_ROUNDS} by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-survival-") as folder, fleet(Path(folder)) as running:
        run = Path(folder, "home", "run")
        running.serve(options.services)
        with traffic(running.gateway, running.names) as sent:
            sent.until_all_answer()
            for number in range(1, options.rounds + 1):
                _kill_agent(run, sent, number)
            gaps = [_kill_gateway(run, running, sent, number) for number in range(1, options.rounds + 1)]
    _say(f"Envoy killed {len(gaps)} times", f"{statistics.median(gaps):.3f} s in the median, {max(gaps):.3f} s at most")


def _kill_agent(run: Path, sent: Traffic, number: int) -> None:
    before, others = _record(run / "agent.json"), _pids(run)
    answered, failed, began = sent.answered, len(sent.failed), time.monotonic()
    os.kill(before["pid"], signal.SIGKILL)
    status = run.parent / "cluster" / "status.json"
    _until(lambda: _record(status).get("pid") not in {None, before["pid"]}, "another agent")
    away_s = time.monotonic() - began
    time.sleep(_SERVES_S)
    same = "the same Envoy and replicas" if _pids(run) == others else "other processes"
    _say(
        f"agent killed, {number}",
        f"another after {away_s:.1f} s, {same}; {sent.answered - answered} requests answered, "
        f"{len(sent.failed) - failed} failed",
    )


def _kill_gateway(run: Path, running: Fleet, sent: Traffic, number: int) -> float:
    time.sleep(_SERVES_S)
    failed, service = len(sent.failed), running.names[0]
    path = f"/serving/{NAMESPACE}/{service}/v2/health/ready"
    began = time.monotonic()
    os.kill(_record(run / "gateway.json")["pid"], signal.SIGKILL)
    _until(lambda: _answers(running.gateway, path), "an answer")
    gap_s = time.monotonic() - began
    time.sleep(1.0)
    _say(f"Envoy killed, {number}", f"{gap_s:.3f} s until an answer; {len(sent.failed) - failed} requests failed")
    return gap_s


def _answers(gateway: str, path: str) -> bool:
    with closing(http.client.HTTPConnection(gateway, timeout=5.0)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def _pids(run: Path) -> dict[str, int]:
    """Return the processes of Envoy and of the replicas."""
    return {
        path.stem: _record(path)["pid"] for path in run.glob("*.json") if path.stem == "gateway" or "." in path.stem
    }


def _record(path: Path) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def _until(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_WITHIN_S:g} s: {what}")
        time.sleep(_LOOK_S)


def _say(what: str, sentence: str) -> None:
    print(f"{what:>20}  {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
