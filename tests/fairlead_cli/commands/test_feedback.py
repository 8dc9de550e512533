"""`fairlead feedback`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.files import label_files

Fairlead = Callable[..., tuple[int, str, str]]
WHERE = "/services/default/digits/feedback"
TAKEN = {"received": 2, "changed": 1, "repeated": 0}
KEPT = {
    "share_percent": 12.5,
    "days": 7,
    "rows": 5,
    "max_rows": 100,
    "bytes": 2048,
    "max_bytes": 1 << 20,
    "left_out": 0,
    "output": "",
    "outputs": ["p"],
    "keeps_inputs": False,
    "parameters": [],
    "created_at": "2026-01-01",
    "created_by": "ann",
}
SCORER = {
    "name": "far",
    "kind": "absoluteError",
    "options": {"bound": 10},
    "unit": {"name": "absolute error", "scale": 10},
    "backfilling": True,
    "unscored": 3,
    "unscored_reason": "request a: no number",
}


def test_keep_sends_only_what_was_said(fairlead: Fairlead, api: Any) -> None:
    api.on(f"PUT {WHERE}/answers", KEPT)
    code, said, _ = fairlead(
        *("feedback", "keep", "digits", "--share", "12.5", "--outputs", "p, q", "--output-name", "p", "--inputs"),
    )
    assert code == 0
    assert api.seen[0].document == {"share_percent": 12.5, "outputs": ["p", "q"], "output": "p", "keeps_inputs": True}
    assert "12.5 %" in said
    assert "5 of 100" in said


def test_stop(fairlead: Fairlead, api: Any) -> None:
    api.on(f"DELETE {WHERE}/answers", {}, status=204)
    code, said, _ = fairlead("feedback", "stop", "digits")
    assert (code, said.strip()) == (0, "no further answers of digits are kept")


def test_score_makes_a_scorer_from_options(fairlead: Fairlead, api: Any) -> None:
    api.on(f"PUT {WHERE}/scorers/far", SCORER)
    code, said, _ = fairlead(
        *("feedback", "score", "digits", "far", "--kind", "costMatrix", "--option", "costs=[[0,1],[5,0]]"),
        *("--option", "output=p"),
    )
    assert code == 0
    assert api.seen[0].document == {"kind": "costMatrix", "options": {"costs": [[0, 1], [5, 0]], "output": "p"}}
    assert "absolute error" in said
    api.on(f"DELETE {WHERE}/scorers/far", {}, status=204)
    assert fairlead("feedback", "score", "digits", "far", "--delete")[0] == 0
    code, _, complaint = fairlead("feedback", "score", "digits", "far")
    assert code == 1
    assert "--kind is missing" in complaint


def test_send_reads_values_as_json_has_them(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", TAKEN, status=202)
    code, said, _ = fairlead("feedback", "send", "digits", "a=3", "b=cat", "c=[1,2]", "d=true", "e=0.5", "f=x=y")
    assert code == 0
    sent = {label["request_id"]: label["value"] for label in api.seen[0].document["labels"]}
    assert sent == {"a": 3, "b": "cat", "c": [1, 2], "d": "true", "e": 0.5, "f": "x=y"}
    assert "changed" in said


@pytest.mark.parametrize(
    ("label", "code", "sentence"), [("a", 2, "no pair"), ("a=NaN", 1, "NaN is no finite"), ("a=1e999", 1, "no finite")]
)
def test_what_is_no_label_is_not_sent(fairlead: Fairlead, api: Any, label: str, code: int, sentence: str) -> None:
    ended, _, complaint = fairlead("feedback", "send", "digits", label)
    assert ended == code
    assert sentence in complaint
    assert api.seen == []


def test_a_large_csv_goes_in_parts_with_the_columns_in_each(
    fairlead: Fairlead, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_files, "MOST_LABELS", 3)
    api.on(f"POST {WHERE}", TAKEN, status=202)
    file = tmp_path / "labels.csv"
    file.write_text("request_id,value\n" + "".join(f'r{number},"a, {number}"\n' for number in range(7)))
    code, said, progress = fairlead("feedback", "file", "digits", str(file))
    assert code == 0
    bodies = [seen.body.decode().splitlines() for seen in api.seen]
    assert [len(body) for body in bodies] == [4, 4, 2]
    assert {body[0] for body in bodies} == {"request_id,value"}
    assert bodies[1][1] == 'r3,"a, 3"'
    assert {seen.headers["content-type"] for seen in api.seen} == {"text/csv"}
    assert "labels sent" in progress
    assert "6" in said  # the sum of three answers


def test_lines_of_json_go_in_parts_as_they_are(
    fairlead: Fairlead, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_files, "MOST_BYTES", 80)
    api.on(f"POST {WHERE}", TAKEN, status=202)
    file = tmp_path / "labels.jsonl"
    lines = [f'{{"request_id": "r{number}", "value": {number}}}\n' for number in range(5)]
    file.write_text("".join(lines).rstrip())
    assert fairlead("feedback", "file", "digits", str(file))[0] == 0
    assert "".join(seen.body.decode() for seen in api.seen) == "".join(lines).rstrip()
    assert len(api.seen) == 3


def test_a_parquet_file_goes_as_it_is(fairlead: Fairlead, api: Any, tmp_path: Path) -> None:
    api.on(f"POST {WHERE}", TAKEN, status=202)
    file = tmp_path / "labels.parquet"
    file.write_bytes(b"PAR1\0\1PAR1")
    assert fairlead("feedback", "file", "digits", str(file))[0] == 0
    assert api.seen[0].body == file.read_bytes()
    assert api.seen[0].headers["content-type"] == "application/vnd.apache.parquet"


def test_a_refused_part_is_named_with_what_was_taken_before(
    fairlead: Fairlead, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_files, "MOST_LABELS", 2)
    refusal = {"error": {"code": "invalid_input", "message": "row 1: no", "field": None, "request_id": ""}}
    api.answers[f"POST {WHERE}"] = [(202, TAKEN), (400, refusal)]
    file = tmp_path / "labels.csv"
    file.write_text("request_id,value\na,1\nb,2\nc,3\n")
    code, _, complaint = fairlead("feedback", "file", "digits", str(file))
    assert code == 1
    assert "lines 4 to 4: row 1: no" in complaint
    assert "the 2 labels before were taken" in complaint


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        pytest.param("labels.txt", "a", "no file of labels by its name", id="another form"),
        pytest.param("labels.csv", "", "is empty", id="empty"),
        pytest.param("labels.csv", 'request_id,value\na,"1\n', "line 2", id="half a quote"),
        pytest.param("missing.csv", None, "cannot be read", id="not there"),
    ],
)
def test_what_is_no_file_of_labels_is_a_sentence(
    fairlead: Fairlead, api: Any, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    code, _, complaint = fairlead("feedback", "file", "digits", str(tmp_path / name))
    assert code == 1
    assert sentence in complaint


def test_show(fairlead: Fairlead, api: Any) -> None:
    answers = {"rows": 5, "bytes": 2048, "left_out": 1}
    found = {"received": 9, "joined": 7, "waiting": 2, "unmatched": 3, "answers": answers, "scorers": [SCORER]}
    api.on(f"GET {WHERE}", found)
    code, said, _ = fairlead("feedback", "show", "digits")
    assert code == 0
    assert "2.0 KiB" in said
    assert "request a: no number" in said
    api.on(f"GET {WHERE}", {**found, "answers": None, "scorers": []})
    assert "none are kept" in fairlead("feedback", "show", "digits")[1]
