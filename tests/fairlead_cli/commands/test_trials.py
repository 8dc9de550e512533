"""`fairlead models try`, `trials` and `stop-trial`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fairlead_cli._support.answers import TRIAL, TRIED

Fairlead = Callable[..., tuple[int, str, str]]
WHERE = "/models/m/versions/1/trials"
REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.5]}]}


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    return "models", "try", "m", "--version", "1", "--data", str(tmp_path / "request.json")


def test_the_file_is_sent_and_the_answer_shown_with_its_times(
    fairlead: Fairlead, api: Any, asked: tuple[str, ...]
) -> None:
    api.on(f"POST {WHERE}", TRIAL, status=202)
    api.on(f"GET {WHERE}/8", {**TRIED, "stage": "answering"})
    code, said, err = fairlead(*asked)
    assert code == 0
    assert api.seen[0].document == {"request": REQUEST}
    assert "answering" in err
    for text in ("0.5 ms", "41.0 ms", "label", "INT64", "[1]", "7"):
        assert text in said


def test_without_waiting_the_trial_is_shown(fairlead: Fairlead, api: Any, asked: tuple[str, ...]) -> None:
    api.on(f"POST {WHERE}", TRIAL, status=202)
    code, said, _ = fairlead(*asked, "--no-wait")
    assert code == 0
    assert "PENDING" in said


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        pytest.param(
            {"status": "FAILED", "reason": "it has no model"},
            "m version 1 was not tried: it has no model",
            id="not loaded",
        ),
        pytest.param(
            {"status": "DONE", "report": {**TRIED["report"], "status": 400, "error": "bad shape"}, "answer": None},
            "m version 1 refused the request (400): bad shape",
            id="refused",
        ),
        pytest.param(
            {"status": "DONE", "report": {**TRIED["report"], "error": "it is too large"}, "answer": None},
            "answered, and the answer cannot be shown (200): it is too large",
            id="too large",
        ),
    ],
)
def test_an_end_without_an_answer_is_told_and_3(
    fairlead: Fairlead, api: Any, asked: tuple[str, ...], ended: dict[str, Any], said: str
) -> None:
    api.on(f"POST {WHERE}", TRIAL, status=202)
    api.on(f"GET {WHERE}/8", {**TRIAL, **ended})
    code, _, err = fairlead(*asked)
    assert code == 3
    assert said in err


@pytest.mark.parametrize(("text", "said"), [("[1]", "holds no object"), ("{", "is no JSON"), (None, "cannot be read")])
def test_a_file_that_holds_no_request_is_not_sent(
    fairlead: Fairlead, api: Any, asked: tuple[str, ...], text: str | None, said: str
) -> None:
    file = Path(asked[-1])
    file.unlink()
    if text is not None:
        file.write_text(text)
    code, _, err = fairlead(*asked)
    assert code != 0
    assert said in err
    assert api.seen == []
