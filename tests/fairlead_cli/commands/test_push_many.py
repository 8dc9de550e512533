"""`fairlead models push-many`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]


def version(number: int, status: str = "READY", model: str = "digits", reason: str = "") -> dict[str, Any]:
    return {"model": model, "number": number, "status": status, "reason": reason}


@pytest.fixture
def folder(at_home: Path) -> Path:
    made = at_home / "models"
    (made / "digits" / "1").mkdir(parents=True)
    (made / "digits" / "1" / "model.onnx").write_bytes(b"digits")
    (made / "letters.onnx").write_bytes(b"letters")
    (made / ".hidden").write_bytes(b"")
    return made


def push(model: str, filename: str) -> str:
    return f"POST /models/{model}/versions?filename={filename}"


def test_each_model_of_a_folder_is_registered(fairlead: Fairlead, api: Any, folder: Path) -> None:
    api.on(push("digits", "digits.tar"), version(3, "PENDING"), status=201)
    api.on(push("letters", "letters.onnx"), version(1, "READY", model="letters"))

    code, said, complained = fairlead("models", "push-many", str(folder), "-o", "json")

    assert (code, complained) == (0, "")
    assert json.loads(said) == [
        {"file": str(folder / "digits"), "model": "digits", "version": 3, "status": "PENDING", "error": ""},
        {"file": str(folder / "letters.onnx"), "model": "letters", "version": 1, "status": "READY", "error": ""},
    ]
    bodies = {seen.path.partition("?")[0]: seen.body for seen in api.seen}
    assert bodies["/models/letters/versions"] == b"letters"
    assert b"1/model.onnx" in bodies["/models/digits/versions"]


def test_one_that_fails_is_a_line_and_stops_no_other(fairlead: Fairlead, api: Any, folder: Path) -> None:
    api.refuse(push("digits", "digits.tar"), 409, "team red has no room")
    api.on(push("letters", "letters.onnx"), version(1, "READY", model="letters"))

    code, said, complained = fairlead("models", "push-many", str(folder))

    assert (code, said) == (1, "")
    assert complained.splitlines() == [
        "digits: team red has no room",
        "1 of 2 models failed; the same command tries those again",
    ]
    assert len(api.seen) == 2


def test_it_waits_for_all_checks_and_names_those_that_are_rejected(fairlead: Fairlead, api: Any, folder: Path) -> None:
    api.on(push("digits", "digits.tar"), version(3, "PENDING"), status=201)
    api.on(push("letters", "letters.onnx"), version(1, "PENDING", model="letters"), status=201)
    api.on("GET /models/digits/versions/3", version(3, "PENDING"), version(3))
    api.on("GET /models/letters/versions/1", version(1, "REJECTED", model="letters", reason="it is no ONNX file"))

    code, said, complained = fairlead("models", "push-many", str(folder), "--wait", "-o", "json")

    assert code == 3
    assert [(row["model"], row["status"]) for row in json.loads(said)] == [("digits", "READY"), ("letters", "REJECTED")]
    assert "letters: letters version 1 was rejected: it is no ONNX file" in complained
    assert complained.splitlines()[-1] == "1 of 2 models were rejected and 0 failed"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(lambda folder: None, "models is no folder; give one that holds the models", id="no folder"),
        pytest.param(lambda folder: folder.mkdir(), "models is empty; put a file or a folder there", id="empty"),
    ],
)
def test_a_folder_without_models_sends_nothing(
    fairlead: Fairlead, api: Any, at_home: Path, make: Callable[[Path], None], sentence: str
) -> None:
    make(at_home / "models")
    code, _, complained = fairlead("models", "push-many", str(at_home / "models"))
    assert (code, api.seen) == (1, [])
    assert sentence in complained


def test_two_entries_of_one_name_are_refused(fairlead: Fairlead, api: Any, folder: Path) -> None:
    (folder / "digits.onnx").write_bytes(b"more digits")
    code, _, complained = fairlead("models", "push-many", str(folder))
    assert (code, api.seen) == (1, [])
    assert "would both be the model 'digits'; rename one of them" in complained
