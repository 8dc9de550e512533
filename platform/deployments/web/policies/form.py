"""Form of a policy file: its strategy, its steps as rows, and their analysis. Pure.

A field is named by its path in the file, such as `steps.0.hold`. Parts of the file without a field stay as they are,
and the form lists them (`Part.unset`).
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.domain.policy import Strategy

Path = tuple[str | int, ...]
OFF = "off"
"""Form value of a limit that is null in the file: switched off."""

_PEOPLE, _APPROVALS = "person", "approvals"
_COMMENT = re.compile(r"(^|\s)#")


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    Attributes:
        kind: text, number, limit (a number, or off), flag, part (an optional object), pause or choice.
        choices: values with their labels.
        usual: the default.
    """

    path: Path
    label: str
    kind: str = "number"
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    usual: str = ""

    @property
    def name(self) -> str:
        """Return the name of the input."""
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class Filled:
    """A field with the file's value; empty where the file has none."""

    field: Field
    value: str

    @property
    def is_known(self) -> bool:
        """Return whether the value is one of the field's choices."""
        return any(self.value == value for value, _ in self.field.choices)


@dataclass(frozen=True, slots=True)
class Part:
    """A group of fields; `unset` are the file's fields there without a form field."""

    fields: tuple[Filled, ...]
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepForm:
    """A step: its portion and its end, its analysis, and the metrics from Prometheus.

    Attributes:
        analysis: None without one.
    """

    index: int
    step: Part
    analysis: Part | None
    metrics: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class PolicyForm:
    """The whole form."""

    head: Part
    steps: tuple[StepForm, ...]
    may_add: bool

    @property
    def fields(self) -> tuple[Filled, ...]:
        """Return every field."""
        parts = [self.head]
        for step in self.steps:
            parts += [step.step, *([step.analysis] if step.analysis else []), *step.metrics]
        return tuple(each for part in parts for each in part.fields)

    @property
    def shape(self) -> tuple[str, ...]:
        """Return the set of its fields; a form with the same ones need not be redrawn."""
        return tuple(each.field.name for each in self.fields)


_STRATEGIES = (
    (Strategy.CANARY.value, "canary"),
    (Strategy.SHADOW.value, "shadow"),
    (Strategy.BLUE_GREEN.value, "blue/green"),
)
_STRATEGY_HELP = {
    Strategy.CANARY.value: "a rising share of requests",
    Strategy.SHADOW.value: "copies; clients see none of its answers",
    Strategy.BLUE_GREEN.value: "a preview, then all requests at once",
}
_UNDECIDED = (("pause", "wait for a person"), ("abort", "abort the rollout"))
_THEN = (("pause", "wait for a person"), ("promote", "make it live"), ("end", "end it"))
_PAUSES = (("", "go on"), (_PEOPLE, "wait for a person"), (_APPROVALS, "wait for approvals"))


def form_of(document: Mapping[str, Any], *, is_new: bool = False) -> PolicyForm | None:
    """Return the form filled from a file; None where its steps are no list of objects, which the form cannot show.

    Args:
        is_new: the policy is new, and may be renamed.
    """
    steps = document.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        return None
    strategy = document.get("strategy", Strategy.CANARY.value)
    head = _part(document, (), _head(document, strategy, is_new=is_new), within=("approval",), leave={"name", "steps"})
    rows = tuple(_step(document, index, strategy) for index in range(len(steps)))
    return PolicyForm(head, rows, may_add=strategy != Strategy.BLUE_GREEN or not steps)


def changed(document: Mapping[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    """Return the file with a form's values; an empty field is removed from it, and an invalid value is kept as typed,
    for the error of its field.
    """
    after: dict[str, Any] = copy.deepcopy(dict(document))
    form = form_of(after, is_new=True)
    for filled in () if form is None else form.fields:
        text = said.get(filled.field.name, filled.value).strip()
        if text != filled.value:
            _write(after, filled.field, text)
    return after


def done(document: Mapping[str, Any], action: str) -> dict[str, Any]:
    """Return the file after a button: `add`, `remove STEP`, `measure STEP` or `unmeasure STEP METRIC`.

    A button for a missing part changes nothing.
    """
    after: dict[str, Any] = copy.deepcopy(dict(document))
    verb, *numbers = action.split()
    steps = after.setdefault("steps", [])
    at = [int(number) for number in numbers if number.isdecimal()]
    if verb == "add":
        steps.append(_next(steps, after.get("strategy")))
    elif verb == "remove" and at and at[0] < len(steps):
        steps.pop(at[0])
    elif verb == "measure" and at and at[0] < len(steps):
        analysis = steps[at[0]].get("analysis") or {}
        metrics = list(analysis.get("metrics") or ())
        metrics.append({"name": f"metric-{len(metrics) + 1}", "query": "", "max": 1})
        steps[at[0]]["analysis"] = {**analysis, "metrics": metrics}
    elif verb == "unmeasure" and len(at) == 2 and at[0] < len(steps):
        metrics = (steps[at[0]].get("analysis") or {}).get("metrics") or []
        if at[1] < len(metrics):
            metrics.pop(at[1])
        if not metrics:
            steps[at[0]].get("analysis", {}).pop("metrics", None)
    return after


def has_comments(text: str) -> bool:
    """Return whether a text seems to have comments, which the form would not write."""
    return any(_COMMENT.search(line) for line in text.splitlines())


def dotted(path: Iterable[str | int]) -> str:
    """Return `steps.0.hold`."""
    return ".".join(map(str, path))


def _head(document: Mapping[str, Any], strategy: object, *, is_new: bool) -> Iterable[Field]:
    if is_new:
        yield Field(("name",), "Name", "text", "lower-case letters, digits and hyphens")
    about = _STRATEGY_HELP.get(str(strategy), "how requests reach the new revision")
    yield Field(("strategy",), "Strategy", "choice", about, _STRATEGIES, usual="canary")
    yield Field(("approval",), "Approval to begin", "part", "", (("", "not needed"), ("yes", "needed")))
    if isinstance(document.get("approval"), Mapping):
        yield from _approval(("approval",))
    late = "when an analysis runs out of time"
    yield Field(("onInconclusive",), "If undecided", "choice", late, _UNDECIDED, "wait for a person")
    if strategy == Strategy.SHADOW:
        yield Field(("then",), "After the last step", "choice", "", _THEN, "wait for a person")
    yield Field(("deadline",), "Longest duration", "text", "of the whole rollout, such as 2h", usual="no limit")
    if document.get("deadline"):
        over = "for longer than that"
        yield Field(("onDeadline",), "If it takes longer", "choice", over, _UNDECIDED, "abort the rollout")
    yield Field(("scaleDownDelay",), "Keep the old revision for", "text", "after it was replaced", usual="30s")
    yield Field(("progressDeadline",), "Time to become ready", "text", "else the rollout fails", usual="2m")


def _approval(path: Path) -> Iterable[Field]:
    yield Field((*path, "approvals"), "Approvals", help="by different people")
    yield Field(
        (*path, "fourEyes"), "Approved by", "flag", "", (("", "anybody who may"), ("yes", "others than its author"))
    )
    yield Field((*path, "expires"), "An approval counts for", "text", "such as 24h")


def _step(document: Mapping[str, Any], index: int, strategy: object) -> StepForm:
    path: Path = ("steps", index)
    step = document["steps"][index]
    analysis = step.get("analysis")
    is_analysed = isinstance(analysis, Mapping)
    metrics = analysis.get("metrics") if isinstance(analysis, Mapping) else None
    shown = metrics if isinstance(metrics, list) and all(isinstance(each, Mapping) for each in metrics) else []
    own = _part(
        document, path, _of_step(path, step, strategy), within=("pause",), leave={"analysis"} if is_analysed else set()
    )
    return StepForm(
        index,
        own,
        _analysis(document, (*path, "analysis"), analysis, leave={"metrics"} if shown else set())
        if isinstance(analysis, Mapping)
        else None,
        tuple(
            _part(document, at, _of_metric(at))
            for at in ((*path, "analysis", "metrics", number) for number in range(len(shown)))
        ),
    )


def _analysis(document: Mapping[str, Any], path: Path, analysis: Mapping[str, Any], *, leave: set[str]) -> Part:
    """Return the fields of an analysis; those of `quality` where the file has it."""
    fields = list(_of_analysis(path))
    if not isinstance(analysis.get("quality"), Mapping):
        return _part(document, path, fields, leave=leave)
    fields += _of_quality((*path, "quality"))
    return _part(document, path, fields, within=("quality",), leave={*leave, "quality"})


def _of_step(path: Path, step: Mapping[str, Any], strategy: object) -> Iterable[Field]:
    if strategy == Strategy.SHADOW:
        yield Field((*path, "weight"), "Copies, %", help="of clients' requests")
    elif strategy == Strategy.BLUE_GREEN:
        yield Field((*path, "weight"), "Requests, %", help="after the preview", usual="100")
    else:
        yield Field((*path, "weight"), "Requests, %", help="that the canary answers")
        yield Field((*path, "mirror"), "Or copies, %", help="in place of requests")
    yield Field((*path, "hold"), "Stay for", "text", "at least, such as 10m", usual="0s")
    yield Field((*path, "pause"), "Then", "pause", "", _PAUSES)
    if isinstance(step.get("pause"), Mapping):
        yield from _approval((*path, "pause"))
    yield Field((*path, "analysis"), "Analysis", "part", "", (("", "none"), ("yes", "must succeed")))


def _of_analysis(path: Path) -> Iterable[Field]:
    yield Field((*path, "minRequests"), "Fewest requests", help="before it can succeed", usual="100")
    yield Field((*path, "maxErrorPercent"), "Most errors, %", help="of the requests", usual="1")
    more = "points at most, or off"
    yield Field((*path, "maxErrorIncreasePercent"), "Errors above stable", "limit", more, usual="1")
    yield Field((*path, "maxSlowPercent"), "Most slow requests, %", "limit", "of the requests, or off", usual="15")
    yield Field((*path, "latencyQuantile"), "Slow is above quantile", help="of stable's latency", usual="0.95")
    yield Field((*path, "minThroughputPercent"), "Least throughput, %", help="of stable's", usual="no limit")
    yield Field((*path, "deadline"), "Undecided after", "text", "since the first request", usual="5m")


def _of_quality(path: Path) -> Iterable[Field]:
    yield Field((*path, "scorer"), "Right answers by", "text", "a scorer of the service")
    yield Field((*path, "maxWorse"), "Worse than stable", help="at most, in the scorer's unit")
    yield Field((*path, "minLabels"), "Fewest labels", help="of the canary's answers", usual="200")
    yield Field((*path, "deadline"), "Without labels until", "text", "since the first request", usual="as above")


def _of_metric(path: Path) -> Iterable[Field]:
    yield Field((*path, "name"), "Name", "text", "of its own")
    yield Field((*path, "query"), "Prometheus query", "text", "may select by {{revision}}")
    yield Field((*path, "max"), "At most")
    yield Field((*path, "min"), "At least")
    yield Field((*path, "maxIncreasePercent"), "Above stable, %", help="at most")
    yield Field((*path, "maxDecreasePercent"), "Below stable, %", help="at most")
    yield Field((*path, "interval"), "Asked every", "text", "such as 30s")


def _part(
    document: Mapping[str, Any],
    path: Path,
    fields: Iterable[Field],
    *,
    within: Sequence[str] = (),
    leave: Iterable[str] = (),
) -> Part:
    """Return filled fields, and the file's other fields there.

    Args:
        within: objects there, of which the form shows some fields.
        leave: fields there that other parts show.
    """
    formed = tuple(fields)
    there, names = _at(document, path), {field.path for field in formed}
    unset = [
        dotted((*inner, name))
        for inner in ((), *((each,) for each in within))
        if isinstance(found := _at(there, inner), Mapping)
        for name in found
        if (*path, *inner, name) not in names and not (inner == () and name in leave)
    ]
    return Part(tuple(Filled(field, _shown(document, field)) for field in formed), tuple(unset))


def _shown(document: Mapping[str, Any], field: Field) -> str:
    value = _at(document, field.path)
    match field.kind:
        case "part":
            return "yes" if isinstance(value, Mapping) else ""
        case "flag":
            return "yes" if value is True else ""
        case "pause":
            return _APPROVALS if isinstance(value, Mapping) else _PEOPLE if value is True else ""
        case "limit" if value is None:
            around = _at(document, field.path[:-1])
            return OFF if isinstance(around, Mapping) and field.path[-1] in around else ""
        case _ if isinstance(value, float) and value.is_integer():
            return str(int(value))
        case _:
            return "" if value is None or isinstance(value, Mapping | list) else str(value)


def _write(document: dict[str, Any], field: Field, text: str) -> None:
    *parents, last = field.path
    there: Any = document
    for name in parents:
        there = there[int(name)] if isinstance(there, list) else there.setdefault(name, {})
    if text == "":
        there.pop(last, None)
        return
    there[last] = _meant(field, text)


def _meant(field: Field, text: str) -> object:
    match field.kind:
        case "part":
            return {}
        case "flag":
            return True
        case "pause":
            return {"approvals": 1} if text == _APPROVALS else True
        case "limit" if text == OFF:
            return None
        case "number" | "limit":
            return _number(text)
        case _:
            return text


def _number(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _at(document: object, path: Iterable[str | int]) -> object:
    for name in path:
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and isinstance(name, int) and name < len(document):
            document = document[name]
        else:
            return None
    return document


def _next(steps: Sequence[Mapping[str, Any]], strategy: object) -> dict[str, Any]:
    """Return a step to follow these: half of the remaining traffic, with the hold and the analysis of the last one."""
    last = steps[-1] if steps else {}
    before = last.get("weight") if isinstance(last.get("weight"), int) else 0
    weight = 100 if strategy == Strategy.BLUE_GREEN else before + max(1, (100 - before) // 2) if before else 10
    kept = {name: copy.deepcopy(last[name]) for name in ("hold", "analysis") if last.get(name) is not None}
    return {"weight": min(100, weight), **(kept or {"hold": "5m", "analysis": {"minRequests": 500}})}
