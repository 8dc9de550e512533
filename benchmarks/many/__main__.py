"""Many services on one machine: what they cost at rest, and a rollout of all of them at once under traffic.

    python -m benchmarks.many [--services 60] [--rest-s 60] [--results FILE]

Starts `fairlead up` with as many services, each one replica of the demo's small model. First it measures the processor
time of the platform's processes while nothing happens, then it rolls out a second version of every service at once,
by a canary of two steps, while each service gets two requests a second.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.many.fleet import Fleet, fleet
from benchmarks.many.processor import Spent, spent
from benchmarks.many.requests import traffic

_SERVICES, _REST_S, _SETTLES_S = 60, 60.0, 75.0
_PARTS = ("worker", "agent", "holder", "gateway", "web", "replicas")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=_SERVICES, help=f"how many, {_SERVICES} by default")
    parser.add_argument("--rest-s", type=float, default=_REST_S, help=f"seconds at rest, {_REST_S:g} by default")
    parser.add_argument("--results", type=Path, help="write the figures to this file too, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-many-") as folder, fleet(Path(folder)) as running:
        results = measured(running, options.services, options.rest_s)
    if options.results:
        options.results.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measured(running: Fleet, services: int, rest_s: float) -> dict[str, object]:
    """Return the figures, and print them as they come."""
    alone = _at_rest(running, rest_s)
    _say("no service", _shares(alone))
    took_s = running.serve(services)
    _say(f"{services} services", f"ready after {took_s:.0f} s")
    time.sleep(_SETTLES_S)  # settled services are looked at every minute
    rest = _at_rest(running, rest_s)
    _say(f"{services} at rest", _shares(rest))
    each = {part: (rest[part] - alone[part]) / services for part in _PARTS}
    _say("each of them", _shares(each))
    with traffic(running.gateway, running.names) as sent:
        sent.until_all_answer()
        first_s, last_s = running.roll_out()
    failed = sent.failed
    _say("rolled out at once", f"the first healthy after {first_s:.1f} s, all after {last_s:.1f} s")
    _say("requests meanwhile", f"{sent.answered} answered, {len(failed)} failed")
    for line in failed[:10]:
        _say("failed", line)
    return {
        "services": services,
        "ready_s": took_s,
        "at_rest_percent_of_a_core": {"none": _percent(alone), "all": _percent(rest), "each": _percent(each)},
        "all_healthy_s": last_s,
        "requests": sent.answered,
        "failed": len(failed),
    }


def _at_rest(running: Fleet, seconds: float) -> Spent:
    """Return the share of a core that each part takes."""
    before, began = spent(running.pid), time.monotonic()
    time.sleep(seconds)
    after, took = spent(running.pid), time.monotonic() - began
    return {part: (after.get(part, 0.0) - before.get(part, 0.0)) / took for part in _PARTS}


def _percent(shares: Spent) -> dict[str, float]:
    return {part: round(100 * share, 3) for part, share in shares.items()}


def _shares(shares: Spent) -> str:
    return ", ".join(f"{part} {percent:.2f} %" for part, percent in _percent(shares).items()) + " of a core"


def _say(what: str, sentence: str) -> None:
    print(f"{what:>20}  {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
