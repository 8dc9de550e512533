"""Tuning order and result: arguments and JSON of `fairlead-serve tune`. Pure.

{"schema": "fairlead.tune-progress/v1", "spent": 0.4, "last": {...}, "best": {...}}      a line, as it goes
{"schema": "fairlead.tune/v1", "chosen": {..., "config": {...}}, "frontier": [...]}      exit status 0
{"schema": "fairlead.tune/v1", "chosen": null, "reason": "one sentence", ...}            exit status 3
{"schema": "fairlead.tune/v1", "error": "one sentence"}                                  exit status 2
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import JobResult

SPARE_S = 300.0
"""Time for fetching and loading the model, and for a measurement that has begun when the budget is used up."""

_SCHEMA, _PROGRESS_SCHEMA = "fairlead.tune/v1", "fairlead.tune-progress/v1"
_ENDED, _REFUSED, _TIMED_OUT = (0, 3), 2, 124
_FOLDER = re.compile(r"\bmodel 'model' ")
"""The runtime names the model after its folder in the job, a name unknown to readers of the reason."""


@dataclass(frozen=True, slots=True)
class TuningOrder:
    """A tuning order.

    Attributes:
        max_latency_p99_ms: the limit.
        budget_s: for the search, without the model's transfer.
        rows: of a request.
        shapes: of inputs with variable dimensions, without that of the batch.
        largest_request_rows: of clients' requests; None for the model's current limit.
        max_instances: None for what the machine suggests.
    """

    max_latency_p99_ms: float
    budget_s: int = 300
    rows: int = 1
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    largest_request_rows: int | None = None
    max_batch_size: int = 128
    max_instances: int | None = None
    max_concurrency: int = 256

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {**asdict(self), "shapes": {name: list(dims) for name, dims in self.shapes.items()}}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TuningOrder":
        shapes = {str(name): tuple(dims) for name, dims in fields.get("shapes", {}).items()}
        return cls(**{**fields, "shapes": shapes})

    @property
    def words(self) -> str:
        """Return the search's goal, as a part of a sentence."""
        return f"tuning for a p99 of {self.max_latency_p99_ms:g} ms"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of `fairlead-serve tune`, beside the model's folder."""
        found = [f"--max-latency-p99-ms={self.max_latency_p99_ms:g}", f"--budget={self.budget_s}s"]
        for name in ("rows", "largest_request_rows", "max_batch_size", "max_instances", "max_concurrency"):
            if (value := getattr(self, name)) is not None:
                found.append(f"--{name.replace('_', '-')}={value}")
        found += [f"--shape={name}:{'x'.join(map(str, dims))}" for name, dims in sorted(self.shapes.items())]
        return tuple(found)


def progress_in(line: str) -> dict[str, Any] | None:
    """Return the progress in a line of a running tuning; None for other lines."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_progress = isinstance(found, dict) and found.get("schema") == _PROGRESS_SCHEMA
    return {key: found.get(key) for key in ("spent", "measurements", "last", "best")} if is_progress else None


def read_report(result: JobResult) -> dict[str, Any]:
    """Return the result of an ended tuning.

    Raises:
        InvalidInput: the model cannot be tuned, or not in time.
        Unavailable: the job ended without a result.
    """
    try:
        document = json.loads(result.output)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("schema") == _SCHEMA:
        if result.exit_code in _ENDED:
            return {key: value for key, value in document.items() if key != "schema"}
        if result.exit_code == _REFUSED:
            raise InvalidInput(_FOLDER.sub("the model ", str(document.get("error"))))
    without_answer = f"the tuning ended with exit code {result.exit_code} and no answer known here"
    if result.exit_code == _TIMED_OUT:
        raise InvalidInput(result.message or without_answer)
    raise Unavailable(result.message or without_answer)


def config_with(config: Mapping[str, object], report: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a ModelConfig, `config` with the chosen ones replaced."""
    return {**config, **report["chosen"]["config"]}
