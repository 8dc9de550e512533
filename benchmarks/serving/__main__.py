"""Fairlead beside what its users would pick instead, and beside the limits.

    make bench [QUICK=1] [RECORD=1] [ONLY="fairlead triton"] [POINTS=image_mean/json]

Every server has one core and the client another; same models, same client, a closed loop. In each round all servers
are asked at a point one right after the other; a ratio is the median of the turns' own. Compare ratios within one run:
absolute figures move with the machine. Peers are installed into environments of their own, outside the work tree; one
that cannot be installed says so. Needs wrk, h2load and taskset (Debian: wrk, nghttp2-client, util-linux).
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.serving import gate, loads, machine, measuring, models, plot, report
from benchmarks.serving.peers import PEERS
from benchmarks.serving.peers.base import Peer
from benchmarks.serving.processes import stop_all_at_the_end
from benchmarks.serving.report import Place
from benchmarks.serving.venvs import python_with

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "results" / "serving.json"
PLOT = ROOT / "docs" / "images" / "serving.svg"
_PLOTTED = (
    (Place("mlp_small", "http", 32), "HTTP, 32 connections (logarithmic)"),
    (Place("mlp_small", "grpc", 32), "gRPC, 32 connections (logarithmic)"),
)


def main() -> int:
    stop_all_at_the_end()
    options = _options()
    if (os.cpu_count() or 1) < 2 or loads.missing():
        lacking = ", ".join(loads.missing()) or "a second core for the client"
        sys.exit(f"The benchmark lacks {lacking}. On Debian: apt-get install wrk nghttp2-client")
    results: dict[str, Any] = {"machine": machine.described(), "quick": options.quick}
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        (folder / "models").mkdir()
        for model in models.MODELS:
            models.save(model, folder / "models" / f"{model}.onnx")
        chosen = [peer for peer in PEERS if not options.only or peer.name in options.only]
        plan = _chosen(measuring.plan(quick=options.quick), options.points)
        run = measuring.Measuring(plan, folder / "models", folder, _say)
        peers = _installed(chosen, run.results)
        run.rounds(peers)
        results |= run.results
    for line in report.lines(results):
        print(line)
    return _kept(results, record=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points, shorter: about eleven minutes")
    parser.add_argument("--record", action="store_true", help="make this run the recorded one")
    parser.add_argument("--only", nargs="*", metavar="SERVER", help=f"of {', '.join(peer.name for peer in PEERS)}")
    parser.add_argument("--points", nargs="*", metavar="MODEL/FORM", help="of the plan, such as image_mean/json")
    options = parser.parse_args()
    if options.record and options.points:
        parser.error("--record keeps a whole run to compare with: leave --points out")
    return options


def _chosen(plan: measuring.Plan, wanted: list[str] | None) -> measuring.Plan:
    """Return the plan with nothing but the wanted points, each as MODEL/FORM; ends the run where one is not in it."""
    known = {f"{point.model}/{point.form}" for point in plan.points}
    unknown = sorted(set(wanted or ()) - known)
    if unknown:
        sys.exit(f"--points {' '.join(unknown)} is not measured; what is: {' '.join(sorted(known))}")
    return replace(plan, points=[p for p in plan.points if not wanted or f"{p.model}/{p.form}" in wanted])


def _installed(chosen: list[Peer], results: dict[str, Any]) -> list[tuple[Peer, Path]]:
    peers = []
    for peer in chosen:
        try:
            python = python_with(peer.name, peer.requirements) if peer.requirements else Path(sys.executable)
        except RuntimeError as error:
            results["servers"][peer.name] = {"ready_s": [], "rss_mb": [], "problem": str(error)}
            _say(f"{peer.name}: {error}")
        else:
            peers.append((peer, python))
    return peers


def _kept(results: dict[str, Any], *, record: bool) -> int:
    """Write what was found, and return 1 where it is worse than what is recorded."""
    text = json.dumps(results, indent=None, separators=(",", ":")).replace('{"round"', '\n{"round"') + "\n"
    if record:
        RECORDED.write_text(text)
        PLOT.write_text(plot.bars(report.cells(results), _PLOTTED))
        print(f"\nrecorded as {RECORDED.relative_to(ROOT)} and {PLOT.relative_to(ROOT)}")
        return 0
    latest = ROOT / "build" / "bench" / "serving.json"
    latest.parent.mkdir(parents=True, exist_ok=True)
    latest.write_text(text)
    latest.with_suffix(".svg").write_text(plot.bars(report.cells(results), _PLOTTED))
    print(f"\nraw results and a plot are in {latest.parent.relative_to(ROOT)}/")
    if not RECORDED.exists():
        return 0
    worse = gate.worse(report.ratios(json.loads(RECORDED.read_text())), report.ratios(results))
    print("\n".join(worse) or "no ratio is worse than the recorded ones")
    return 1 if worse else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
