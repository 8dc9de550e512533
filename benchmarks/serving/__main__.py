"""Fairlead beside what its users would pick instead, and beside the limits.

    make bench [QUICK=1] [RECORD=1] [ONLY="fairlead triton"] [POINTS=image_mean/json]

Every server has one core and the client another; same models, same client, a closed loop. In each round all servers
are asked at a point one right after the other; a ratio is the median of the turns' own. Compare ratios within one run:
absolute figures move with the machine. Peers are installed into environments of their own, outside the work tree; one
that cannot be installed says so. Needs wrk, h2load and taskset (Debian: wrk, nghttp2-client, util-linux).
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving import gate, loads, machine, measuring, models, options, plot, report
from benchmarks.serving.peers.base import Peer
from benchmarks.serving.processes import run_program
from benchmarks.serving.report import Place
from benchmarks.serving.venvs import python_with

ROOT = Path(__file__).parents[2]
LATEST = ROOT / "build" / "bench" / "serving.json"
RECORDED = ROOT / "benchmarks" / "results" / "serving.json"
PLOT = ROOT / "docs" / "images" / "serving.svg"
_PLOTTED = (
    (Place("mlp_small", "http", 32), "HTTP, 32 connections (logarithmic)"),
    (Place("mlp_small", "grpc", 32), "gRPC, 32 connections (logarithmic)"),
)


def main() -> int:
    asked = options.parse(None, __doc__)
    if (os.cpu_count() or 1) < 2 or loads.missing():
        lacking = ", ".join(loads.missing()) or "a second core for the client"
        sys.exit(f"The benchmark lacks {lacking}. On Debian: apt-get install wrk nghttp2-client")
    results: dict[str, Any] = {"machine": machine.described(), "quick": asked.quick}
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        (folder / "models").mkdir()
        for model in models.MODELS:
            models.save(model, folder / "models" / f"{model}.onnx")
        run = measuring.Measuring(asked.plan, folder / "models", folder, _say)
        peers = _installed(asked.peers, run.results)
        try:
            run.rounds(peers)
        except Exception:
            _write_latest(results | run.results)
            raise
        results |= run.results
    for line in report.lines(results):
        print(line)
    return _kept(results, record=asked.record)


def _installed(chosen: Sequence[Peer], results: dict[str, Any]) -> list[tuple[Peer, Path]]:
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
    if record:
        RECORDED.write_text(_text(results))
        PLOT.write_text(plot.bars(report.cells(results), _PLOTTED))
        print(f"\nrecorded as {RECORDED.relative_to(ROOT)} and {PLOT.relative_to(ROOT)}")
        return 0
    _write_latest(results)
    if not RECORDED.exists():
        return 0
    recorded, found = report.ratios(json.loads(RECORDED.read_text())), report.ratios(results)
    worse = gate.worse(recorded, found)
    print("\n".join(worse) or gate.passed(recorded, found))
    return 1 if worse else 0


def _write_latest(results: dict[str, Any]) -> None:
    LATEST.parent.mkdir(parents=True, exist_ok=True)
    LATEST.write_text(_text(results))
    LATEST.with_suffix(".svg").write_text(plot.bars(report.cells(results), _PLOTTED))
    print(f"\nraw results and a plot are in {LATEST.parent.relative_to(ROOT)}/")


def _text(results: dict[str, Any]) -> str:
    return json.dumps(results, indent=None, separators=(",", ":")).replace('{"round"', '\n{"round"') + "\n"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_program(main)
