"""What clients notice when the local agent or the gateway is killed.

    python -m benchmarks.survival [--services 8] [--rounds 5]

Starts `fairlead up` with as many services, each one replica of the demo's small model, and sends each two requests a
second. In each round it kills the agent with SIGKILL and waits until another looks after the services, then it kills
Envoy, while one client asks for one service again and again on new connections: its gap is the time from the kill to
the first answer.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.killing import answers, record, seconds_until, served_by
from benchmarks.many.fleet import Fleet, fleet
from benchmarks.many.requests import Traffic, traffic
from fairlead_cli.demo.story import NAMESPACE

_SERVICES, _ROUNDS = 8, 5
_SERVES_S = 8.0


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
    before, others = record(run / "agent.json"), served_by(run)
    answered, failed = sent.answered, len(sent.failed)
    os.kill(before["pid"], signal.SIGKILL)
    status = run.parent / "cluster" / "status.json"
    away_s = seconds_until(lambda: record(status).get("pid") not in {None, before["pid"]}, "another agent")
    time.sleep(_SERVES_S)
    same = "the same Envoy and replicas" if served_by(run) == others else "other processes"
    _say(
        f"agent killed, {number}",
        f"another after {away_s:.1f} s, {same}; {sent.answered - answered} requests answered, "
        f"{len(sent.failed) - failed} failed",
    )


def _kill_gateway(run: Path, running: Fleet, sent: Traffic, number: int) -> float:
    time.sleep(_SERVES_S)
    failed, service = len(sent.failed), running.names[0]
    path = f"/serving/{NAMESPACE}/{service}/v2/health/ready"
    os.kill(record(run / "gateway.json")["pid"], signal.SIGKILL)
    gap_s = seconds_until(lambda: answers(running.gateway, path), "an answer")
    time.sleep(1.0)
    _say(f"Envoy killed, {number}", f"{gap_s:.3f} s until an answer; {len(sent.failed) - failed} requests failed")
    return gap_s


def _say(what: str, sentence: str) -> None:
    print(f"{what:>20}  {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
