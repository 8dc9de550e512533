"""Asking the real serving runtime about fields of a config, and what a runtime that does not answer is told as."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from common.errors import InvalidInput, Unavailable
from integrations.clusters.local.jobs.config_check import check_config

POLICY = {"max_queue_size": 3}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"max_batch_size": 8, "instance_group": [{"kind": "KIND_CPU", "count": 2}]}, id="numbers and words"
        ),
        pytest.param({"parameters": {"threads": {"string_value": "2"}}}, id="a map by text"),
        pytest.param(
            {"dynamic_batching": {"priority_levels": 2, "priority_queue_policy": {"1": POLICY}}}, id="a map by number"
        ),
    ],
)
def test_fields_that_the_runtime_takes_pass(fields: Mapping[str, object]) -> None:
    check_config(fields)


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        pytest.param({"max_batch": 8}, "max_batch", "has no field named", id="unknown"),
        pytest.param({"max_batch_size": "many"}, "max_batch_size", "couldn't parse integer", id="a wrong type"),
        pytest.param({"max_batch_size": None}, None, "max_batch_size is None", id="no value"),
        pytest.param(
            {"optimization": {"cuda": {"graphs": True}}}, "optimization.cuda", "does not support", id="not honoured"
        ),
        pytest.param(
            {"dynamic_batching": {"priority_queue_policy": {"first": POLICY}}},
            "dynamic_batching.priority_queue_policy.key",
            "couldn't parse integer",
            id="a map by number with a text",
        ),
    ],
)
def test_a_mistake_is_refused_by_its_field(fields: Mapping[str, object], field: str | None, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_config(fields)
    assert refused.value.field == field
    assert sentence in refused.value.message


def test_the_same_fields_are_asked_about_once(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    code = f"open({str(asked)!r}, 'a').write('x'); print('{{\"schema\": \"fairlead.check-config/v1\"}}')"
    for _ in range(2):
        check_config({"max_batch_size": 8}, runtime=(sys.executable, "-c", code))
    assert asked.read_text() == "x"


@pytest.mark.parametrize(
    ("runtime", "timeout_s", "sentence"),
    [
        pytest.param(
            (sys.executable, "-c", "raise SystemExit('broken')"),
            10.0,
            "exit code 1: broken",
            id="it ends with an error",
        ),
        pytest.param(
            (sys.executable, "-c", 'print(\'{"schema": "other/v2"}\')'), 10.0, "schema 'other/v2'", id="another schema"
        ),
        pytest.param(
            (sys.executable, "-c", "import signal; signal.pause()"), 0.1, "no answer within 0.1 s", id="it hangs"
        ),
        pytest.param(("/nowhere/runtime",), 10.0, "No such file", id="it is not there"),
    ],
)
def test_a_runtime_that_gives_no_answer_is_unavailable(
    runtime: tuple[str, ...], timeout_s: float, sentence: str
) -> None:
    with pytest.raises(Unavailable, match=sentence):
        check_config({"max_batch_size": 8}, runtime=runtime, timeout_s=timeout_s)
