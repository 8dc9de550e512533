"""Trial order and result: arguments and JSON of `fairlead-serve try`. Pure.

{"schema": "fairlead.try-progress/v1", "stage": "loading the model"}                             a line, as it goes
{"schema": "fairlead.try/v1", "status": 200, "load_ms": ..., "answer": {V2}, "labels": {...}}    exit status 0
{"schema": "fairlead.try/v1", "status": 400, "load_ms": ..., "error": "one sentence"}            exit status 3
{"schema": "fairlead.try/v1", "error": "one sentence"}                                           exit status 2
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import JobResult

MOST_REQUEST_BYTES, MOST_ANSWER_BYTES = 4 << 20, 1 << 20
ARGUMENTS = (f"--max-answer-bytes={MOST_ANSWER_BYTES}",)
"""Arguments of `fairlead-serve try`, beside the model's folder and the request's address."""

_SCHEMA, _PROGRESS_SCHEMA = "fairlead.try/v1", "fairlead.try-progress/v1"
_ENDED, _NOT_ASKED, _TIMED_OUT = (0, 3), 2, 124
_MOST_SENTENCE, _MOST_STAGE = 2000, 200
STARTING = "starting the runtime"
_STEPS = {
    "": "Waiting for a worker",
    STARTING: "Starting the runtime",
    "loading the model": "Loading the model",
    "answering": "Answering",
}
"""Display texts of the stages, in their order; the last two are the runtime's words."""
_TIMES = ("load_ms", "first_ms", "infer_ms")
_FOLDER = re.compile(r"\bmodel 'model'(?: version 1\b)?")
"""The runtime names the model after its folder in the job, a name unknown to readers of the sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trial; `state` is done, now or next."""

    label: str
    state: str


@dataclass(frozen=True, slots=True)
class Tried:
    """Result of a request to a loaded model.

    Attributes:
        answer: V2's JSON as text; empty where the request was refused, or the response cannot be shown.
        report: `status` as of a server over HTTP; `load_ms`, `first_ms` of the first response and `infer_ms`, the
            median of `runs` more; `error` instead of a response; `labels` of classes, by output.
    """

    answer: str
    report: dict[str, Any]


def request_text(request: Mapping[str, Any]) -> str:
    """Return the request in its sent form; raises InvalidInput where it is invalid, or too large to be stored."""
    if not isinstance(request.get("inputs"), list):
        raise InvalidInput("the request has no list `inputs`; give the body of a V2 inference request", field="request")
    text = json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if (size := len(text.encode())) > MOST_REQUEST_BYTES:
        raise InvalidInput(
            f"the request has {size} bytes, and a trial takes {MOST_REQUEST_BYTES}; send fewer rows or a smaller "
            "picture, or deploy the version and send it to the service",
            field="request",
        )
    return text


def stage_in(line: str) -> str:
    """Return the stage in a line of a running trial; empty for other lines."""
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    is_progress = isinstance(found, dict) and found.get("schema") == _PROGRESS_SCHEMA
    return str(found.get("stage", ""))[:_MOST_STAGE] if is_progress else ""


def steps_at(stage: str) -> tuple[Step, ...]:
    """Return all steps at a stage; an unknown stage counts as the start."""
    at = list(_STEPS).index(stage if stage in _STEPS else STARTING)
    states = ["done"] * at + ["now"] + ["next"] * (len(_STEPS) - at - 1)
    return tuple(map(Step, _STEPS.values(), states))


def read_report(result: JobResult, *, model: str, number: int) -> Tried:
    """Return the result of an ended trial, with the model's names in the registry.

    Raises:
        InvalidInput: the model cannot be loaded, or not in time.
        Unavailable: the job ended without a result.
    """
    try:
        document = json.loads(result.output)
    except ValueError:
        document = None
    said = result.message.replace("the try of the model", "the trial")
    if isinstance(document, dict) and document.get("schema") == _SCHEMA:
        if result.exit_code in _ENDED:
            return _tried(document, model, number)
        if result.exit_code == _NOT_ASKED:
            raise InvalidInput(_sentence(document.get("error"), model, number))
    without_answer = said or f"the trial ended with exit code {result.exit_code} and no answer known here"
    if result.exit_code == _TIMED_OUT:
        raise InvalidInput(without_answer)
    raise Unavailable(without_answer)


def _tried(document: Mapping[str, Any], model: str, number: int) -> Tried:
    report: dict[str, Any] = {"status": int(document["status"]), "runs": int(document["runs"])}
    report |= {name: float(document[name]) for name in _TIMES}
    if "error" in document:
        return Tried("", report | {"error": _sentence(document["error"], model, number)})
    answer = {**document["answer"], "model_name": model, "model_version": str(number)}
    labels = document.get("labels", {})
    report["labels"] = {str(name): [_kept(str(label)) for label in known] for name, known in labels.items()}
    return Tried(json.dumps(answer, ensure_ascii=True), report)


def _sentence(said: object, model: str, number: int) -> str:
    return _kept(_FOLDER.sub(f"model '{model}' version {number}", str(said)))[:_MOST_SENTENCE]


def _kept(text: str) -> str:
    """Return the text without characters that PostgreSQL cannot store."""
    return text.replace("\0", "")
