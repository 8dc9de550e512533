"""How the control plane's work grows with its tables: 10,000 services and 100,000 model versions at the largest.

    python -m benchmarks.scale [--quick] [--record]

On a PostgreSQL of its own, which is filled to three sizes. At each, every page and API call is asked, and sweeps are
made over all services, of which a hundred are in the middle of a rollout; only their cluster is stood in for. Times are
those of the processors, of this process and its database connection's together; ratios are to the smallest size.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import django

from benchmarks.serving.processes import run_program
from tests.servers.postgres import postgres

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "results" / "scale.json"
SIZES = ((1_000, 100), (10_000, 1_000), (100_000, 10_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    parser.add_argument("--record", action="store_true", help="make this run the recorded one")
    options = parser.parse_args()
    with postgres() as server, tempfile.TemporaryDirectory(prefix="fairlead-scale-") as home:
        _set_up(server.url, home)
        results = _measured(SIZES[:-1] if options.quick else SIZES)
    from benchmarks.scale import report  # noqa: PLC0415

    print("\n".join(report.lines(results)))
    if options.record:
        RECORDED.write_text(json.dumps(results, indent=1) + "\n")
        print(f"\nrecorded as {RECORDED.relative_to(ROOT)}")


def _set_up(database_url: str, home: str) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_DATABASE_URL": database_url,
        "FAIRLEAD_HOME": home,
        "FAIRLEAD_SECRET_KEY": "only-for-measuring-" + "x" * 40,
        "FAIRLEAD_LOG_LEVEL": "ERROR",
    }
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.test.utils import setup_test_environment  # noqa: PLC0415

    setup_test_environment(debug=False)
    call_command("migrate", verbosity=0)


def _measured(sizes: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """Return what everything took, a value for each size."""
    from benchmarks.scale.asking import Asking  # noqa: PLC0415 - what reads Django's settings
    from benchmarks.scale.filling import Filling  # noqa: PLC0415
    from benchmarks.scale.outside import Counters  # noqa: PLC0415
    from benchmarks.scale.sweeping import sweeps  # noqa: PLC0415

    filling, asking, counters = Filling(), Asking(), Counters()
    found = []
    for versions, services in sizes:
        _say(f"{versions:,} versions and {services:,} services: filling")
        filling.fill(versions=versions, services=services)
        _say("  asking")
        asked = {name: asdict(each) for name, each in asking.everything().items()}
        _say("  sweeping")
        swept = asdict(sweeps(filling.cluster, counters))
        found.append({"versions": versions, "services": services, "asked": asked, "sweep": swept})
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_program(main)
