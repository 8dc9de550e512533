"""A run in lines: what grew, and by how much."""

from collections.abc import Iterator, Sequence
from typing import Any


def lines(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of all calls and of the sweep, with ratios of the largest size to the smallest."""
    sizes = [f"{each['versions']:,}" for each in results]
    yield f"{'queries':>36} {'ms of processors, versions:':>28} {' '.join(f'{size:>9}' for size in sizes)} {'ratio':>7}"
    for name in results[0]["asked"]:
        asked = [each["asked"][name] for each in results]
        queries = "/".join(dict.fromkeys(str(each["queries"]) for each in asked))
        yield _line(name, queries, [each["processor_ms"] for each in asked])
    swept = [each["sweep"] for each in results]
    yield ""
    yield _line("a sweep", "/".join(str(each["queries"]) for each in swept), [each["processor_ms"] for each in swept])
    yield f"{'its ticks':<34} {' / '.join(str(each['ticks']) for each in swept)}"


def _line(name: str, queries: str, times_ms: Sequence[float]) -> str:
    columns = " ".join(f"{time:9.2f}" for time in times_ms)
    return f"{name:<34} {queries:>30} {columns} {times_ms[-1] / times_ms[0]:7.2f}"
