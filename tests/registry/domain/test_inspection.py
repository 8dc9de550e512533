import json

import pytest

from integrations.clusters.base import JobResult
from registry.domain.inspection import NotAccepted, at_least, read_inspection, read_profile
from registry.domain.version_lifecycle import Outcome, Refused, Unchecked

GOOD = {
    "schema": "fairlead.inspect/v1",
    "platform": "onnxruntime_onnx",
    "max_batch_size": 4,
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 64]}],
    "outputs": [{"name": "y", "datatype": "INT64", "shape": [-1]}],
    "opset": {"ai.onnx": 17},
}


def test_an_accepted_model() -> None:
    signature, platform = read_inspection(JobResult(0, json.dumps(GOOD)))
    assert signature.as_json() == {key: GOOD[key] for key in ("inputs", "outputs", "max_batch_size")}
    assert platform == "onnxruntime_onnx"


def test_a_profile_is_kept_without_its_schema() -> None:
    printed = {"schema": "fairlead.profile/v1", "load_seconds": 0.1, "memory_bytes": 7, "batches": []}
    assert read_profile(JobResult(0, json.dumps(printed))) == {"load_seconds": 0.1, "memory_bytes": 7, "batches": []}


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        pytest.param(
            JobResult(2, '{"schema":"fairlead.inspect/v1","error":"not an ONNX file"}', "not an ONNX file"),
            Refused("not an ONNX file"),
            id="the runtime refuses the model",
        ),
        pytest.param(
            JobResult(2, json.dumps({"schema": "fairlead.inspect/v1", "error": "model 'm' version 1: no ONNX"})),
            Refused("no ONNX"),
            id="the name of the job's folder is left out",
        ),
        pytest.param(
            JobResult(
                2, json.dumps({"schema": "fairlead.inspect/v1", "error": "it needs lightgbm", "of_installation": True})
            ),
            Refused("it needs lightgbm", of_installation=True),
            id="the runtime lacks a library",
        ),
        pytest.param(
            JobResult(124, "", "the inspect of the model did not finish within 120 s"),
            Unchecked("the inspect of the model did not finish within 120 s"),
            id="a timeout",
        ),
        pytest.param(
            JobResult(-9, "", "the inspect of the model was ended by SIGKILL: it printed nothing"),
            Unchecked("the inspect of the model was ended by SIGKILL: it printed nothing"),
            id="killed",
        ),
        pytest.param(
            JobResult(2, "usage: serving_runtime", ""),
            Unchecked("the inspect of the model ended with exit code 2 and no answer known here"),
            id="exit code 2 without the answer is no refusal",
        ),
        pytest.param(
            JobResult(0, json.dumps({**GOOD, "schema": "fairlead.inspect/v2"})),
            Unchecked("the inspect of the model ended with exit code 0 and no answer known here"),
            id="another version of the answer",
        ),
        pytest.param(
            JobResult(0, "[1]"),
            Unchecked("the inspect of the model ended with exit code 0 and no answer known here"),
            id="JSON of another kind",
        ),
        pytest.param(
            JobResult(0, json.dumps({**GOOD, "inputs": None})),
            Unchecked("the runtime's inspect answered in a form not known here: the signature has no list 'inputs'"),
            id="an answer without its parts",
        ),
    ],
)
def test_what_is_not_accepted(result: JobResult, outcome: Outcome) -> None:
    with pytest.raises(NotAccepted) as answer:
        read_inspection(result)
    assert answer.value.outcome == outcome


def test_a_very_long_reason_is_cut() -> None:
    with pytest.raises(NotAccepted) as answer:
        read_profile(JobResult(2, json.dumps({"schema": "fairlead.profile/v1", "error": "x" * 100_000})))
    assert len(answer.value.outcome.reason) == 2000


@pytest.mark.parametrize(
    ("found", "before", "expected"),
    [
        pytest.param(16, 0, 16, id="the first version"),
        pytest.param(16, 4, 16, id="more than before"),
        pytest.param(16, 32, 32, id="fewer than before"),
        pytest.param(16, 500, 64, id="more was asked for by a configuration then"),
        pytest.param(None, 32, None, id="the model's own configuration says"),
    ],
)
def test_a_version_takes_as_many_rows_as_those_before(found: int | None, before: int, expected: int | None) -> None:
    profile = {"load_seconds": 0.1} if found is None else {"load_seconds": 0.1, "max_batch_size": found}
    assert at_least(profile, before).get("max_batch_size") == expected
