"""Executes the configuration search: measures the trials that `search` chooses until the budget is used up."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.tuning import served
from serving_runtime.tuning.measurement import Measurement
from serving_runtime.tuning.report import conclusion, report
from serving_runtime.tuning.requests import infer_call
from serving_runtime.tuning.search import next_trial
from serving_runtime.tuning.trials import Rig


@dataclass(frozen=True, slots=True)
class Order:
    """Parameters of the search.

    Attributes:
        budget_s: for the whole search; a measurement that has begun is completed.
        window_s: of one measurement.
        rows: of a request.
        shapes: of inputs with variable dimensions.
    """

    bounds: served.Bounds
    budget_s: float
    window_s: float
    rows: int
    shapes: Mapping[str, Sequence[int]]


def tune(
    model: Path,
    scratch: Path,
    order: Order,
    on_measured: Callable[[Sequence[Measurement], float], None],
    *,
    allow_python_models: bool = False,
    config_name: str = "",
) -> tuple[dict[str, Any], str]:
    """Return the search's document, and the config.pbtxt of the chosen setting (the model's own where none was chosen).

    Args:
        on_measured: gets all measurements after each, and the used share of the budget.

    Raises:
        ModelError: the model cannot be served, cannot be tuned, or accepts no synthetic request.
        InvalidArgument: a shape does not fit the model.
    """
    if not model.is_dir():
        raise ModelError(f"{model}: no such folder")
    began = time.monotonic()
    rig = Rig(model, scratch, allow_python_models=allow_python_models, config_name=config_name)
    try:
        config = rig.served_config()
        served.check_tunable(config)
        call = infer_call(config, order.shapes, rows=order.rows)
        space = served.space_of(config, rig.written, order.bounds)
        limit_ms = order.bounds.limit_ms
        measured: list[Measurement] = []
        spent = 0.0
        while trial := next_trial(space, limit_ms, measured, spent):
            fields = served.fields_of(trial.setting, space.baseline, config, rig.written)
            measured.append(rig.measure(trial, fields, call, order.window_s))
            if len(measured) == 1 and measured[0].load is None:
                raise ModelError(f"model '{model.name}' as it is cannot be measured: {measured[0].reason}")
            spent = (time.monotonic() - began) / order.budget_s
            on_measured(measured, spent)
        document = report(space, limit_ms, measured)
        document["rows_per_request"] = order.rows
        document["seconds"] = round(time.monotonic() - began, 1)
        fields = {}
        if chosen := document["chosen"]:
            setting = type(space.baseline)(**{key: chosen[key] for key in space.baseline.__slots__})
            fields = served.fields_of(setting, space.baseline, config, rig.written)
            chosen["config"] = fields
        document["conclusion"] = conclusion(document)
        return document, rig.config_text(fields)
    finally:
        rig.close()
