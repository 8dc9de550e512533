"""Scorers: a kept answer and its label give a loss, 0 for right up to 1 for as wrong as can be.

    accuracy                            the top class is the label
    topK {k}                            the label is among the k classes of the highest scores
    logLoss {bound}                     -ln of the label's probability, at most `bound` nats
    brier                               squared distance of the probabilities from the label
    absoluteError, squaredError {bound} of a regression; differences beyond `bound` count as `bound`
    costMatrix {costs}                  costs[label][top class], of the largest cost
    reward {low, high}                  the label is a reward; what it lacks of `high`

A request of several rows has a label for each of them, and its loss is their mean. Losses are bounded, so that a gate
can count them as evidence; `unit_of` gives the factor to the number that people read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput

Options = Mapping[str, Any]
Label = int | float | str
MOST_CLASSES = 100
"""Of a cost matrix."""
MOST_K = 1000
_MOST_NATS = 100.0
_MOST_ERROR = 1e150
"""Its square is a number too."""
_SUM_TOLERANCE = 1e-3
"""Probabilities in FP16 add up to 1 as exactly as this."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What people read of a scorer: a loss times `scale` is a number of `name`."""

    name: str
    scale: float


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What is kept of an answer.

    Attributes:
        top: [class, score] of each row, of a regression [0, value], of whole numbers [value, value]. A class is an
            index or a text; a score is None where it is not finite.
        values: of the scored output, row by row; empty where they are not kept.
    """

    top: Sequence[Sequence[Any]]
    values: Sequence[Sequence[float]] = field(default=())


Losses = Callable[[Options, KeptAnswer, Sequence[Label]], Sequence[float]]


def check_options(kind: str, options: Options) -> None:
    """Raise InvalidInput, naming the field, where there is no such kind or its options are invalid."""
    if kind not in KINDS:
        raise InvalidInput(f"kind is {kind[:60]!r}; it is one of {', '.join(KINDS)}", field="kind")
    needed = _OPTIONS[kind]
    known = (*needed, *(("output",) if kind in OF_VALUES else ()))
    for name in options:
        if name not in known:
            expected = f"it has {', '.join(known)}" if known else "it has none"
            raise InvalidInput(f"{str(name)[:60]} is no option of {kind}; {expected}", field="options")
    for name in needed:
        if name not in options:
            raise InvalidInput(f"{kind} needs the option {name}, which is missing", field=f"options.{name}")
        _CHECKS[name](kind, options)
    if kind == "reward" and not options["low"] < options["high"]:
        raise InvalidInput(
            f"low is {options['low']:g} and high is {options['high']:g}; a reward is from low up to a higher high",
            field="options.high",
        )
    output = options.get("output", "x")
    if not isinstance(output, str) or not 0 < len(output) <= 200:
        raise InvalidInput("output is the name of one of the outputs that are kept", field="options.output")


def loss(kind: str, options: Options, answer: KeptAnswer, label: object) -> float:
    """Return the loss of the answer, the mean over its rows, 0 to 1.

    Args:
        kind, options: as `check_options` takes them.
        label: a number or a text, or a list of one for each row; a reward of a whole request may be one number.

    Raises:
        InvalidInput: the label does not fit the answer, or the answer does not fit the scorer.
    """
    if kind in OF_VALUES and not answer.values:
        raise InvalidInput(f"{kind} reads the values of an output, which are not kept of this answer")
    rows = len(answer.values) if kind in OF_VALUES else len(answer.top)
    labels: Sequence[Label] = label if isinstance(label, list) else [label]  # type: ignore[list-item]
    if kind == "reward" and not isinstance(label, list):
        rows = 1
    if not rows:
        raise InvalidInput("of this answer no row is kept, so it cannot be scored")
    if len(labels) != rows:
        raise InvalidInput(f"the label is for {_count(len(labels))}, and the answer has {_count(rows)}; send one each")
    for each in labels:
        if isinstance(each, float) and not math.isfinite(each):
            raise InvalidInput(f"the label is {each}; expected a finite number or a text")
    losses = KINDS[kind](options, answer, labels)
    found = losses[0] if rows == 1 else math.fsum(losses) / rows
    if not 0.0 <= found <= 1.0 + 1e-9:  # NaN too
        raise InvalidInput(f"the answer has a number from which {kind} can be computed by no rule, such as NaN")
    return min(1.0, found)


def unit_of(kind: str, options: Options) -> Unit:
    """Return the unit in which people read the scorer."""
    bound = float(options.get("bound", 1.0))
    fixed = {
        "accuracy": Unit("percent wrong", 100.0),
        "topK": Unit("percent wrong", 100.0),
        "logLoss": Unit("nats", bound),
        "brier": Unit("Brier score", 2.0),
        "absoluteError": Unit("absolute error", bound),
        "squaredError": Unit("squared error", bound * bound),
    }
    if kind == "costMatrix":
        return Unit("cost", _largest(options["costs"]))
    if kind == "reward":
        return Unit("reward lost", float(options["high"]) - float(options["low"]))
    return fixed[kind]


def same_class(answered: object, label: Label) -> bool:
    """Return whether a label names the class of an answer, by index or text: 3, 3.0 and "3" are the same class."""
    return answered == label or _text(answered) == _text(label)


def _accuracy(_: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    return [0.0 if same_class(row[0], label) else 1.0 for row, label in zip(answer.top, labels, strict=True)]


def _top_k(options: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    found = []
    for row, label in zip(answer.values, labels, strict=True):
        _check_numbers(row)
        index = _index(label, len(row))
        higher = sum(1 for at, score in enumerate(row) if score > row[index] or (score == row[index] and at < index))
        found.append(0.0 if higher < options["k"] else 1.0)
    return found


def _log_loss(options: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    found = []
    for row, label in zip(answer.values, labels, strict=True):
        probabilities = _distribution(row)
        right = probabilities[_index(label, len(probabilities))]
        nats = -math.log(right) if right > 0 else math.inf
        found.append(min(max(0.0, nats), options["bound"]) / options["bound"])
    return found


def _brier(_: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    found = []
    for row, label in zip(answer.values, labels, strict=True):
        probabilities = _distribution(row)
        index = _index(label, len(probabilities))
        squares = (value - (at == index) for at, value in enumerate(probabilities))
        found.append(min(1.0, sum(each * each for each in squares) / 2))
    return found


def _absolute_error(options: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    bound = options["bound"]
    return [min(abs(difference), bound) / bound for difference in _differences(answer, labels)]


def _squared_error(options: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    return [each * each for each in _absolute_error(options, answer, labels)]


def _cost(options: Options, answer: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    costs, most = options["costs"], _largest(options["costs"])
    return [
        costs[_index(label, len(costs))][_index(row[0], len(costs), "the answer")] / most
        for row, label in zip(answer.top, labels, strict=True)
    ]


def _reward(options: Options, _: KeptAnswer, labels: Sequence[Label]) -> Sequence[float]:
    low, high = options["low"], options["high"]
    return [(high - min(max(_number(label), low), high)) / (high - low) for label in labels]


def _differences(answer: KeptAnswer, labels: Sequence[Label]) -> list[float]:
    found = []
    for row, label in zip(answer.top, labels, strict=True):
        answered, value = row[0], row[1]
        if isinstance(answered, str) or answered not in (0, value):
            raise InvalidInput(f"the answer is the class {_text(answered)[:60]!r}, and an error needs a number")
        if value is None:
            raise InvalidInput("the answer is no finite number, so its error cannot be computed")
        found.append(float(value) - _number(label))
    return found


def _number(label: Label) -> float:
    if isinstance(label, bool) or not isinstance(label, int | float):
        raise InvalidInput(f"the label is the text {str(label)[:60]!r}; this scorer compares numbers, so send one")
    return float(label)


def _index(label: object, classes: int, of: str = "the label") -> int:
    """Return the index of a class; raises InvalidInput for a text, or one beyond the classes."""
    text = _text(label)
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidInput(f"{of} is {text[:60]!r}; this scorer needs the index of a class, 0 to {classes - 1}")
    if int(text) >= classes:
        raise InvalidInput(f"{of} is class {text}, and there are {classes} classes, 0 to {classes - 1}")
    return int(text)


def _distribution(row: Sequence[float]) -> Sequence[float]:
    """Return the probabilities of the classes; a row of one number is the probability of class 1."""
    _check_numbers(row)
    if min(row) < 0 or max(row) > 1 + _SUM_TOLERANCE:
        raise InvalidInput(
            f"the output has {min(row):g} to {max(row):g}, which are no probabilities; keep an output of "
            "probabilities, such as that of a softmax"
        )
    if len(row) == 1:
        right = min(1.0, row[0])
        return (1.0 - right, right)
    if abs(math.fsum(row) - 1) > _SUM_TOLERANCE:
        raise InvalidInput(
            f"the output's numbers add up to {math.fsum(row):g}, so they are no probabilities; keep an output of "
            "probabilities, such as that of a softmax"
        )
    return row


def _check_numbers(row: Sequence[Any]) -> None:
    if not row or not all(isinstance(value, int | float) and math.isfinite(value) for value in row):
        raise InvalidInput("the output has a row with values that are no finite numbers")


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _largest(costs: Sequence[Sequence[float]]) -> float:
    return float(max(max(row) for row in costs))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST_ERROR


def _check_k(_: str, options: Options) -> None:
    k = options["k"]
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST_K:
        raise InvalidInput(f"k is {_shown(k)}; it is a whole number, 1 to {MOST_K}", field="options.k")


def _check_bound(kind: str, options: Options) -> None:
    bound, most = options["bound"], _MOST_NATS if kind == "logLoss" else _MOST_ERROR
    if not _is_number(bound) or not 1e-9 <= bound <= most:
        raise InvalidInput(f"bound is {_shown(bound)}; it is a number, 1e-09 to {most:g}", field="options.bound")


def _check_end(name: str) -> Callable[[str, Options], None]:
    def check(_: str, options: Options) -> None:
        if not _is_number(options[name]):
            raise InvalidInput(f"{name} is {_shown(options[name])}; it is a finite number", field=f"options.{name}")

    return check


def _check_costs(_: str, options: Options) -> None:
    costs = options["costs"]
    size = len(costs) if isinstance(costs, list) else 0
    if not 2 <= size <= MOST_CLASSES or any(not isinstance(row, list) or len(row) != size for row in costs):
        raise InvalidInput(
            f"costs is a list of rows, one for each class of a label, with a cost for each class of an answer: as many "
            f"rows as columns, 2 to {MOST_CLASSES}",
            field="options.costs",
        )
    if any(not _is_number(cost) or cost < 0 for row in costs for cost in row) or _largest(costs) <= 0:
        raise InvalidInput("costs are numbers from 0 on, at least one of them above 0", field="options.costs")


def _shown(value: object) -> str:
    return repr(value)[:60]


KINDS: Mapping[str, Losses] = {
    "accuracy": _accuracy,
    "topK": _top_k,
    "logLoss": _log_loss,
    "brier": _brier,
    "absoluteError": _absolute_error,
    "squaredError": _squared_error,
    "costMatrix": _cost,
    "reward": _reward,
}
OF_VALUES = frozenset({"topK", "logLoss", "brier"})
"""Kinds that read the values of an output; the others read the top class, or the label alone."""
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "accuracy": (),
    "topK": ("k",),
    "logLoss": ("bound",),
    "brier": (),
    "absoluteError": ("bound",),
    "squaredError": ("bound",),
    "costMatrix": ("costs",),
    "reward": ("low", "high"),
}
_CHECKS: Mapping[str, Callable[[str, Options], None]] = {
    "k": _check_k,
    "bound": _check_bound,
    "costs": _check_costs,
    "low": _check_end("low"),
    "high": _check_end("high"),
}
