"""Prints where the time of a test run went: minutes per suite, and the slowest tests and fixtures of each.

`python -m tests.suites.table [--slowest N] [FOLDER]` reads what `timings.py` wrote into `build/suites/`. `.ci/run` ends
with it.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path("build/suites")
Suite = Mapping[str, Any]


def suites(folder: Path) -> list[Suite]:
    """Return what is known of each suite that ran, in the order of their beginning."""
    found = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return sorted(found, key=lambda suite: float(suite["began"]))


def table(found: Sequence[Suite]) -> Iterator[str]:
    """Yield the lines of a Markdown table: a suite a line, then what all took together, from first to last."""
    yield "| suite | minutes | processor minutes | files | tests | result |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for suite in found:
        files = {name.partition("::")[0] for name in suite["tests"]}
        yield (
            f"| {suite['suite']} | {suite['seconds'] / 60:.1f} | {suite['processor_seconds'] / 60:.1f} "
            f"| {len(files)} | {len(suite['tests']):,} | {suite['summary']} |"
        )
    if found:
        began = min(suite["began"] for suite in found)
        ended = max(suite["began"] + suite["seconds"] for suite in found)
        processor = sum(suite["processor_seconds"] for suite in found)
        tests = sum(len(suite["tests"]) for suite in found)
        yield f"| from first to last | {(ended - began) / 60:.1f} | {processor / 60:.1f} | | {tests:,} | |"


def slowest_tests(suite: Suite, most: int) -> Iterator[str]:
    """Yield the slowest tests, each with the seconds of its phases."""

    def seconds(test: Mapping[str, Any]) -> float:
        return float(sum(test.get(phase, 0.0) for phase in ("setup", "call", "teardown")))

    slow = sorted(suite["tests"].items(), key=lambda each: -seconds(each[1]))[:most]
    for name, test in slow:
        phases = ", ".join(f"{phase} {test[phase]:.1f}" for phase in ("setup", "call", "teardown") if phase in test)
        yield f"{seconds(test):8.1f} s  {name} ({phases})"


def slowest_fixtures(suite: Suite, most: int) -> Iterator[str]:
    """Yield the fixtures that took longest in all: how often each was made, and for which test it took longest."""
    made: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for each in suite["fixtures"]:
        made[each["name"], each["scope"]].append(each)
    totals = {key: sum(each["seconds"] for each in times) for key, times in made.items()}
    for name, scope in sorted(totals, key=lambda key: -totals[key])[:most]:
        times = made[name, scope]
        worst = max(times, key=lambda each: float(each["seconds"]))
        yield (
            f"{totals[name, scope]:8.1f} s  {name} ({scope}), {len(times)} times; "
            f"{worst['seconds']:.1f} s for {worst['test']}"
        )


def report(found: Sequence[Suite], most: int) -> Iterator[str]:
    """Yield the whole report."""
    for suite in found if most else ():
        yield f"== {suite['suite']}: the {most} slowest tests"
        yield from slowest_tests(suite, most)
        yield f"== {suite['suite']}: the {most} fixtures that took longest"
        yield from slowest_fixtures(suite, most)
        for reason, count in suite["skipped"].items():
            yield f"== {suite['suite']}: {count} skipped: {reason}"
    yield from table(found)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report; 1 where no suite has run."""
    parser = argparse.ArgumentParser(prog="python -m tests.suites.table", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where suites wrote their times")
    parser.add_argument(
        "--slowest", type=int, default=20, metavar="N", help="how many tests and fixtures of each suite"
    )
    given = parser.parse_args(argv)
    found = suites(given.folder)
    if not found:
        sys.stderr.write(f"{given.folder} has no times of a suite; run one, such as `make test`\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in report(found, given.slowest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
