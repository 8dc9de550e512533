"""Draws what the analysis promises: false alarms against looks, and power against requests, over thousands of rollouts.

    python -m benchmarks.analysis.curves [--runs 4000] [--folder docs/images]      (with PYTHONPATH=platform)

A rollout has 300 blocks of two seconds (ten minutes) at 30 requests a second, in steps of 10, 25 and 50 %, and the
default gate with its four measurements. Prints the figures as it goes; the page docs/reference/analysis.md shows them.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.analysis import traffic
from benchmarks.analysis.chart import Chart
from benchmarks.analysis.rollouts import Bases, simulate
from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.eprocess import Floats

BLOCKS, ALPHA = 300, 0.01
REQUESTS = (10, 20, 50, 100, 200, 500, 1000, 2000)
REGRESSIONS = {
    "all fail": Bases(worse_errors=1.0),
    "20 % fail": Bases(worse_errors=0.2),
    "10 % fail": Bases(worse_errors=0.1),
    "5 % fail": Bases(worse_errors=0.05),
    "90 % slow": Bases(worse_slow=0.9),
    "50 % slow": Bases(worse_slow=0.5),
    "30 % slow": Bases(worse_slow=0.3),
}
HARD = Bases(server_errors=0.008, slow=0.08)


def false_alarms(runs: int) -> Chart:
    """Return how many good canaries were failed by each look, in percent, with and without the remedies."""
    lines = {}
    for name, kind in traffic.KINDS.items():
        ends = simulate(kind, HARD, runs=runs, blocks=BLOCKS, alpha=ALPHA)
        lines[name] = _percent(ends.failed_by(BLOCKS))
        print(f"false alarms, {name}: {lines[name][-1][1]:.2f} % of {runs} rollouts", flush=True)
    longest, eprocess._LONGEST_RUN = eprocess._LONGEST_RUN, 1.0
    try:
        ends = simulate(traffic.long_pauses_of_one_side, HARD, runs=runs, blocks=BLOCKS, alpha=ALPHA)
    finally:
        eprocess._LONGEST_RUN = longest
    lines["long pauses, no remedy (dashed)"] = _percent(ends.failed_by(BLOCKS))
    lines["z-test at each look (dashed)"] = _percent(_ordinary_test(runs))
    for name in list(lines)[-2:]:
        print(f"false alarms, {name}: {lines[name][-1][1]:.2f} %", flush=True)
    return Chart(
        "Good canaries failed, of 100 (alpha is 1)", "looks, one every two seconds", "% failed by then",
        (0, 50, 100, 150, 200, 250, 300), (0, 1, 2, 5, 10, 15, 20), lines,
    )  # fmt: skip


def power(kind_name: str, runs: int) -> Chart:
    """Return how many bad canaries were failed before so many requests met them, in percent."""
    lines = {}
    for name, bases in REGRESSIONS.items():
        ends = simulate(traffic.KINDS[kind_name], bases, runs=runs, blocks=BLOCKS, alpha=ALPHA)
        lines[name] = [(at, 100 * float((ends.requests[np.isfinite(ends.block)] <= at).sum()) / runs) for at in _grid()]
        print(f"power, {kind_name}, {name}: median {np.median(ends.requests):.0f} requests", flush=True)
    title = f"Bad canaries failed, of 100 ({kind_name} traffic)"
    return Chart(title, "requests of the canary", "% failed by then", REQUESTS, (0, 25, 50, 75, 100), lines, log_x=True)


def _grid() -> list[float]:
    return [float(at) for at in np.geomspace(REQUESTS[0], REQUESTS[-1], 80)]


def _percent(failed: Floats) -> list[tuple[float, float]]:
    return [(float(look), 100 * float(share)) for look, share in enumerate(failed, start=1)]


def _ordinary_test(runs: int) -> Floats:
    """Return [BLOCKS] the share failed by a two-proportion z-test at 1 % on all requests so far, asked at each look."""
    random = np.random.default_rng(1)
    sizes = traffic.steps_of(random, BLOCKS, runs)
    bad = [random.binomial(size.astype(int), HARD.slow) for size in (sizes.canary, sizes.stable)]
    (canary, stable), (n, m) = (
        (np.cumsum(each, axis=0) for each in bad),
        (np.maximum(1.0, np.cumsum(each, axis=0)) for each in (sizes.canary, sizes.stable)),
    )
    pooled = (canary + stable) / (n + m)
    z = (canary / n - stable / m) / np.sqrt(np.maximum(pooled * (1 - pooled) * (1 / n + 1 / m), 1e-12))
    return np.asarray(np.maximum.accumulate(z > 2.326, axis=0).mean(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "analysis-false-alarms.svg").write_text(false_alarms(options.runs).svg())
    for name in ("independent", "bursts of one side", "autocorrelated"):
        file = options.folder / f"analysis-power-{name.split()[0]}.svg"
        file.write_text(power(name, options.runs // 4).svg())


if __name__ == "__main__":
    main()
