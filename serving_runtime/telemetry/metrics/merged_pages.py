"""Merges the metrics pages of several worker processes: sums series, or labels them by the workers' slices. Pure."""

from collections.abc import Callable, Mapping, Sequence

from serving_runtime.telemetry.metrics.text import number

_NEWEST = frozenset({"process_start_time_seconds"})
"""Gauges whose sum has no meaning: the maximum is shown."""


def summed(pages: Sequence[str]) -> str:
    """Return one page in Prometheus' text format, with the sum of each series over the pages."""
    merged: dict[str, list[str]] = {}
    values: dict[str, dict[str, float]] = {}
    for page in pages:
        name = ""
        for line in page.splitlines():
            if line.startswith("# "):
                name = line.split(" ", 3)[2]
                lines = merged.setdefault(name, [])
                if line not in lines:
                    lines.append(line)
            elif line:
                series, _, value = line.rpartition(" ")
                add: Callable[[float, float], float] = max if series in _NEWEST else float.__add__
                found = values.setdefault(name, {})
                found[series] = add(found[series], float(value)) if series in found else float(value)
    lines = []
    for name, own in merged.items():
        lines += own + [f"{series} {number(value)}" for series, value in values.get(name, {}).items()]
    return "".join(f"{line}\n" for line in lines)


def joined(pages: Mapping[str, str]) -> str:
    """Return one page in Prometheus' text format.

    Args:
        pages: by the UUID of their worker's slice; series that already have a GPU label stay as they are.
    """
    families: dict[str, list[str]] = {}
    for uuid, page in pages.items():
        name = ""
        for line in page.splitlines():
            if line.startswith("# "):
                name = line.split(" ", 3)[2]
                lines = families.setdefault(name, [])
                if line not in lines:
                    lines.append(line)
            elif line:
                families.setdefault(name, []).append(_labelled(line, uuid))
    return "".join(f"{line}\n" for lines in families.values() for line in lines)


def _labelled(sample: str, uuid: str) -> str:
    name, brace, rest = sample.partition("{")
    if not brace:
        name, _, value = sample.partition(" ")
        return f'{name}{{gpu_uuid="{uuid}"}} {value}'
    return sample if 'gpu_uuid="' in rest else f'{name}{{gpu_uuid="{uuid}",{rest}'
