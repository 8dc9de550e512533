"""Detectors of drift compared: delay, false alarms and cost, on the same streams of values.

The other libraries are in an environment of their own, which the project does not need otherwise:

    python3 -m venv /tmp/drift-env
    /tmp/drift-env/bin/pip install river==0.23.0 frouros==0.9.0 nannyml==0.13.1 statsmodels
    NML_DISABLE_USAGE_LOGGING=1 PYTHONPATH=platform /tmp/drift-env/bin/python benchmarks/feedback/drift.py

Each run learns 10,000 values as the reference, in blocks of 100, then reads up to 20,000 more. A detector that reads
one value at a time (ADWIN, KSWIN, Page-Hinkley) has read the reference; one that compares chunks gets blocks of 100.
The table has, for each stream, the runs with an alarm where nothing moved, and the median number of values until the
alarm where something did. `--cost` measures the features of an exchange instead, in the project's environment.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from feedback.domain.drift import detector
from feedback.domain.drift.features import Kind
from feedback.domain.drift.reference import learn, nothing_learned, reference_of
from feedback.domain.drift.sketch import FIRST_VALUES, bins_of

Values = np.ndarray[Any, np.dtype[np.float64]]
Detect = Callable[[Values, Values, bool], int | None]
LEARNED, READ, BLOCK = 10_000, 20_000, 100


def normal(random: np.random.Generator, count: int, moved: float) -> Values:
    """Return independent normal values."""
    return random.normal(moved, 1, count)


def clumped(random: np.random.Generator, count: int, moved: float) -> Values:
    """Return normal values of which each occurs ten times in a row, as of a client that repeats itself."""
    return np.repeat(random.normal(moved, 1, count // 10), 10)


def classes(random: np.random.Generator, count: int, moved: float) -> Values:
    """Return ten classes; class 3 is answered more often by `moved`."""
    shares = np.full(10, 0.1 - moved / 9)
    shares[3] = 0.1 + moved
    return random.choice(10, count, p=shares / shares.sum()).astype(float)


STREAMS: list[tuple[str, Callable[[np.random.Generator, int, float], Values], bool, tuple[float, ...]]] = [
    ("normal, mean moved by", normal, False, (0.0, 0.25, 0.5, 1.0)),
    ("the same, each value ten times", clumped, False, (0.0, 0.5, 1.0)),
    ("ten classes, one more often by", classes, True, (0.0, 0.05, 0.1, 0.2)),
]


def of_fairlead(reference: Values, stream: Values, is_class: bool) -> int | None:
    """Return after how many values the e-detector has its alarm; ten features have one false alarm a year."""
    kind = Kind.CLASS if is_class else Kind.NUMBER
    text = (lambda values: [str(int(each)) for each in values]) if is_class else (lambda values: values)
    bins = bins_of(kind, list(text(reference[:FIRST_VALUES])))
    if bins is None:
        return None
    sums = nothing_learned(len(bins.events(np.zeros(bins.size))))
    for block in _blocks(reference[FIRST_VALUES:]):
        sums = learn(sums, bins.events(bins.counts(text(block))), len(block))
    known, capital = reference_of(sums), detector.calm(len(sums.counts))
    for number, block in enumerate(_blocks(stream), 1):
        capital = detector.detect(capital, bins.events(bins.counts(text(block))), len(block), known)
        if detector.evidence(capital) >= detector.threshold(10):
            return number * BLOCK
    return None


def of_adwin(reference: Values, stream: Values, is_class: bool) -> int | None:
    """river: ADWIN."""
    from river.drift import ADWIN  # noqa: PLC0415 - of an environment of its own

    return _one_by_one(ADWIN(), reference, _of_class_3(stream, is_class), is_class)


def of_kswin(reference: Values, stream: Values, is_class: bool) -> int | None:
    """river: KSWIN."""
    from river.drift import KSWIN  # noqa: PLC0415 - of an environment of its own

    return _one_by_one(KSWIN(seed=1), reference, _of_class_3(stream, is_class), is_class)


def of_page_hinkley(reference: Values, stream: Values, is_class: bool) -> int | None:
    """river: Page-Hinkley."""
    from river.drift import PageHinkley  # noqa: PLC0415 - of an environment of its own

    return _one_by_one(PageHinkley(), reference, _of_class_3(stream, is_class), is_class)


def of_frouros(reference: Values, stream: Values, is_class: bool) -> int | None:
    """frouros: Kolmogorov-Smirnov or chi-squared test of each block at 0.01."""
    from frouros.detectors.data_drift import ChiSquareTest, KSTest  # noqa: PLC0415 - of an environment of its own

    test = ChiSquareTest() if is_class else KSTest()
    test.fit(X=reference)
    for number, block in enumerate(_blocks(stream), 1):
        if test.compare(X=block)[0].p_value < 0.01:
            return number * BLOCK
    return None


def of_nannyml(reference: Values, stream: Values, is_class: bool) -> int | None:
    """nannyml: univariate drift by Jensen-Shannon distance of each block, at its own limits."""
    import nannyml  # noqa: PLC0415 - of an environment of its own
    import pandas as pd  # noqa: PLC0415 - of an environment of its own

    name = "value"
    columns = {"treat_as_categorical": [name]} if is_class else {}
    found = nannyml.UnivariateDriftCalculator(
        column_names=[name],
        continuous_methods=["jensen_shannon"],
        categorical_methods=["jensen_shannon"],
        chunk_size=BLOCK,
        **columns,
    ).fit(pd.DataFrame({name: reference}))
    alarms = found.calculate(pd.DataFrame({name: stream})).filter(period="analysis").to_df()
    column = alarms[(name, "jensen_shannon", "alert")].to_numpy()
    return (int(np.argmax(column)) + 1) * BLOCK if column.any() else None


DETECTORS: dict[str, tuple[Detect, int]] = {
    "Fairlead": (of_fairlead, 40),
    "river ADWIN": (of_adwin, 20),
    "river KSWIN": (of_kswin, 5),
    "river Page-Hinkley": (of_page_hinkley, 20),
    "frouros, test of each block": (of_frouros, 20),
    "nannyml, Jensen-Shannon": (of_nannyml, 5),
}


def _one_by_one(found: Any, reference: Values, stream: Values, is_class: bool) -> int | None:
    for value in _of_class_3(reference, is_class):
        found.update(float(value))
    for number, value in enumerate(stream, 1):
        found.update(float(value))
        if found.drift_detected:
            return number
    return None


def _of_class_3(values: Values, is_class: bool) -> Values:
    """Return what a detector of numbers gets of classes: whether it is the one that will move, which favours it."""
    return (values == 3).astype(float) if is_class else values


def _blocks(values: Values) -> Iterator[Values]:
    for start in range(0, len(values) - BLOCK + 1, BLOCK):
        yield values[start : start + BLOCK]


def compare(scale: float) -> None:
    """Print the table."""
    warnings.filterwarnings("ignore")
    print("| stream | moved | " + " | ".join(DETECTORS) + " |")
    print("| --- | --- |" + " --- |" * len(DETECTORS))
    for name, draw, is_class, moves in STREAMS:
        for moved in moves:
            cells = []
            for detect, most_runs in DETECTORS.values():
                runs = max(2, round(most_runs * scale))
                delays = []
                for seed in range(runs):
                    random = np.random.default_rng(seed)
                    reference = draw(random, LEARNED, 0.0)
                    delays.append(detect(reference, draw(random, READ, moved), is_class))
                seen = [each for each in delays if each is not None]
                median = f"{np.median(seen):,.0f}" if len(seen) * 2 > runs else "none"
                cells.append(f"{len(seen)} of {runs}" if not moved else f"{median} ({len(seen)} of {runs})")
            print(f"| {name} | {moved:g} | " + " | ".join(cells) + " |", flush=True)


def cost() -> None:
    """Print how long the features and bins of an exchange take."""
    from feedback.reconcile.drift_exchanges import taken_from  # noqa: PLC0415 - of an environment of its own
    from integrations.clusters.base import Exchange  # noqa: PLC0415 - of an environment of its own

    random = np.random.default_rng(1)
    for columns in (8, 64, 784):
        data = random.normal(size=columns).tolist()
        request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, columns], "data": data}]}
        response = {"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 10], "data": [0.1] * 10}]}
        exchanges = [Exchange(f"r{number}", "r", "1", 0.0, request, response) for number in range(256)]
        taken = taken_from(exchanges, "", with_texts=True)
        bins = {each: bins_of(each.kind, list(values)) for each, values in taken.values.items()}
        began, rounds = time.perf_counter(), 20
        for _ in range(rounds):
            taken = taken_from(exchanges, "", with_texts=True)
            for feature, values in taken.values.items():
                its = bins[feature]
                if its is not None:
                    its.counts(values)
        spent = (time.perf_counter() - began) / rounds / len(exchanges)
        print(f"a row of {columns} columns, 10 scores: {spent * 1e6:.0f} us an exchange, {len(taken.values)} features")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of runs")
    asked = parser.parse_args()
    cost() if asked.cost else compare(asked.scale)
