"""Storage form of comparison reports and of halves that wait. Pure.

Halves hold whole bodies, which are kept compressed and only until their counterpart comes; a report is small JSON.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from deployments.domain.comparison.distribution import Distribution
from deployments.domain.comparison.pairing import Waiting
from deployments.domain.comparison.report import OutputReport, Report
from deployments.domain.comparison.worst_examples import Worst
from integrations.clusters.base import Exchange

_DISTRIBUTIONS = ("abs", "rel", "angle")
_SIDES = ("stable", "shadow")


def report_json(report: Report) -> dict[str, Any]:
    """Return a report without its worst requests, which are kept apart."""
    plain = {each.name: getattr(report, each.name) for each in fields(Report) if each.name not in ("outputs", "worst")}
    return plain | {"outputs": {name: _output_json(output) for name, output in report.outputs.items()}}


def worst_json(report: Report) -> list[dict[str, Any]]:
    """Return the worst requests of a report."""
    return [worst.as_json() for worst in report.worst]


def stored_report(value: Mapping[str, Any], worst: list[Mapping[str, Any]]) -> Report:
    """Return the report from the JSON of `report_json` and `worst_json`; an empty one from an empty object."""
    outputs = {name: _output(output) for name, output in value.get("outputs", {}).items()}
    return Report(**{**value, "outputs": outputs, "worst": tuple(Worst(**each) for each in worst)})


def waiting_bytes(waiting: Waiting) -> bytes:
    """Return the halves that wait, compressed."""
    sides = {side: [_half_json(half) for half in getattr(waiting, side)] for side in _SIDES}
    rest = {"stable_alone": waiting.stable_alone, "shadow_alone": waiting.shadow_alone, "newest": waiting.newest}
    return zlib.compress(json.dumps(rest | sides).encode(), 1)


def stored_waiting(value: bytes) -> Waiting:
    """Return the halves that wait from the bytes of `waiting_bytes`; none from empty bytes."""
    if not value:
        return Waiting()
    read = json.loads(zlib.decompress(value))
    sides = {side: tuple(Exchange(**half) for half in read[side]) for side in _SIDES}
    return Waiting(**{**read, **sides})


def _output_json(output: OutputReport) -> dict[str, Any]:
    plain = {each.name: getattr(output, each.name) for each in fields(OutputReport)}
    return plain | {name: plain[name].as_json() for name in _DISTRIBUTIONS}


def _output(value: Mapping[str, Any]) -> OutputReport:
    return OutputReport(**{**value, **{name: Distribution.stored(value[name]) for name in _DISTRIBUTIONS}})


def _half_json(half: Exchange) -> dict[str, Any]:
    return {each.name: getattr(half, each.name) for each in fields(Exchange)}
