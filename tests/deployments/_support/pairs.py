"""Answers of two models to random requests, as the tests of reports need them."""

from datetime import UTC, datetime, timedelta

import numpy as np

from common.tensors import Tensor
from deployments.domain.comparison.answers import Answer, compare
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import Report, add
from deployments.domain.comparison.worst_examples import worst_of

START = datetime(2030, 1, 1, tzinfo=UTC)


def tensor(values):
    return Tensor("FP32", np.array(values, np.float32))


def compared(number, off, *, failed=False, rows=1):
    """Return a comparison whose shadow's first row is off by `off`, and the exchange as it would be kept."""
    inputs = {"x": tensor([[number]] * rows)}
    stable = Answer({"y": tensor([[1.0, 2.0]] * rows)})
    shadow = (
        Answer({}, error="broken") if failed else Answer({"y": tensor([[1.0 + off, 2.0]] + [[1.0, 2.0]] * (rows - 1))})
    )
    found = compare(inputs, stable, shadow, Terms())
    return found, worst_of(f"r{number}", START + timedelta(seconds=number), found, inputs, (stable, shadow))


def report_of(*items):
    report = Report()
    for number, off in enumerate(items):
        report = add(report, *compared(number, off))
    return report
