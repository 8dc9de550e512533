import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from feedback.models import Label
from tests import scenes
from tests.feedback._support.rows import answer, join, keep

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/feedback"
CSV, LINES, PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"


@pytest.fixture
def caller(api: Api) -> APIClient:
    scenes.service()
    return api(Scope.WRITE)


def values() -> dict[str, Any]:
    return dict(Label.objects.values_list("request_id", "value"))


def test_a_batch_of_json(caller: APIClient) -> None:
    given_at = (timezone.now() - timedelta(hours=3)).isoformat()
    body = {
        "labels": [
            {"request_id": "a", "value": 3.0},
            {"request_id": "b", "value": "cat", "given_at": given_at},
            {"request_id": "c", "value": [1, "two", 0.5], "given_at": None},
        ]
    }
    answered = caller.post(URL, body, format="json")
    assert answered.status_code == 202, answered.json()
    assert answered.json() == {"received": 3, "changed": 0, "repeated": 0}
    assert values() == {"a": 3, "b": "cat", "c": [1, "two", 0.5]}
    assert Label.objects.get(request_id="b").given_at.isoformat() == given_at
    assert Label.objects.get(request_id="a").given_by == "alice (token alice-write)"
    assert caller.post(URL, body, format="json").json() == {"received": 3, "changed": 0, "repeated": 3}
    assert not AuditEntry.objects.filter(target__contains="feedback").exists()


def test_csv_and_lines_of_json(caller: APIClient) -> None:
    text = 'value,request_id,given_at\r\n3,a,2026-01-31T12:00:00Z\n"a, b",b,\n"[1, 2]",c,2026-01-31\n\n-1.5e3,d,\n'
    answered = caller.post(URL, "\ufeff" + text, content_type=CSV)
    assert answered.json() == {"received": 4, "changed": 0, "repeated": 0}
    assert values() == {"a": 3, "b": "a, b", "c": [1, 2], "d": -1500}
    lines = '{"request_id": "a", "value": 4}\n\n{"request_id": "e", "value": "x"}\n'
    assert caller.post(URL, lines, content_type=LINES).json() == {"received": 2, "changed": 1, "repeated": 0}
    assert values()["e"] == "x"


def parquet(**columns: object) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files  # noqa: PLC0415 - where it is installed

    content = io.BytesIO()
    files.write_table(arrow.table(columns), content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        pytest.param([1, 2], {"a": 1, "b": 2}, id="integers"),
        pytest.param([0.5, 2.0], {"a": 0.5, "b": 2}, id="numbers"),
        pytest.param(["cat", "dog"], {"a": "cat", "b": "dog"}, id="texts"),
        pytest.param([[1, 2], [3]], {"a": [1, 2], "b": [3]}, id="lists"),
    ],
)
def test_parquet(caller: APIClient, column: list[object], expected: dict[str, object]) -> None:
    times = [timezone.now() - timedelta(hours=1), None]
    answered = caller.post(URL, parquet(request_id=["a", "b"], value=column, given_at=times), content_type=PARQUET)
    assert answered.json() == {"received": 2, "changed": 0, "repeated": 0}
    assert values() == expected
    assert Label.objects.get(request_id="a").given_at == times[0]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param({"value": 1}, "request_id is 'None'", id="no request"),
        pytest.param({"request_id": "", "value": 1}, "request_id is ''", id="empty request"),
        pytest.param({"request_id": 7, "value": 1}, "request_id is '7'", id="a number"),
        pytest.param({"request_id": "x" * 129, "value": 1}, "1 to 128 printable", id="long request"),
        pytest.param({"request_id": "a\nb", "value": 1}, "printable characters", id="a line break"),
        pytest.param({"request_id": "r"}, "value is missing", id="no value"),
        pytest.param({"request_id": "r", "value": None}, "value is None", id="null"),
        pytest.param({"request_id": "r", "value": True}, "value is True", id="true"),
        pytest.param({"request_id": "r", "value": {"class": 1}}, "a flat list", id="an object"),
        pytest.param({"request_id": "r", "value": [[1]]}, "a flat list", id="nested"),
        pytest.param({"request_id": "r", "value": []}, "a list of 0", id="empty list"),
        pytest.param({"request_id": "r", "value": [1] * 65}, "a list of 65", id="long list"),
        pytest.param({"request_id": "r", "value": "x" * 257}, "1 to 256 printable", id="long text"),
        pytest.param({"request_id": "r", "value": "a\0"}, "printable characters", id="a zero byte"),
        pytest.param({"request_id": "r", "value": 10**400}, "not finite or too large", id="a huge number"),
        pytest.param({"request_id": "r", "value": 1, "given_at": "yesterday"}, "ISO 8601", id="no time"),
        pytest.param({"request_id": "r", "value": 1, "given_at": 5}, "ISO 8601", id="a number as time"),
        pytest.param({"request_id": "r", "value": 1, "given_at": "2999-01-01"}, "in the future", id="future"),
        pytest.param({"request_id": "r", "value": 1, "givenat": "2026"}, "givenat is not a field", id="misspelt"),
        pytest.param("r=1", "it is 'r=1'", id="no object"),
    ],
)
def test_one_bad_row_refuses_the_whole_batch_with_its_number(caller: APIClient, row: object, sentence: str) -> None:
    body = {"labels": [{"request_id": "good", "value": 1}, row]}
    answered = caller.post(URL, body, format="json")
    assert answered.status_code == 400
    message = answered.json()["error"]["message"]
    assert message.startswith("row 2: ")
    assert sentence in message
    assert message.endswith("nothing of the batch was taken")
    assert not Label.objects.exists()


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"),
    [
        pytest.param("application/json", "", "the body is empty", id="nothing"),
        pytest.param("application/json", "[]", 'no list "labels"', id="no object"),
        pytest.param("application/json", '{"labels": 1}', 'no list "labels"', id="no list"),
        pytest.param("application/json", '{"labels": [], "x": 1}', "x is not a field", id="a further field"),
        pytest.param("application/json", '{"labels": [{"request_id": "a", "value": NaN}]}', "NaN", id="NaN in JSON"),
        pytest.param("application/json", '{"labels": [{"request_id": "a", "value": 1e999}]}', "finite", id="infinity"),
        pytest.param(CSV, "a,1\n", "no column request_id; its columns are a, 1", id="CSV without columns"),
        pytest.param(CSV, "request_id,value,weight\n", "the column 'weight'", id="CSV with another column"),
        pytest.param(CSV, "request_id,value,value\n", "the column 'value' twice", id="CSV with one twice"),
        pytest.param(CSV, "request_id,value\na\n", "line 2 of the CSV has 1 cells", id="CSV with a short line"),
        pytest.param(CSV, "request_id,value\na,\n", "line 2 of the CSV: value is empty", id="CSV without value"),
        pytest.param(CSV, "request_id,value\na,nan\n", "value is nan", id="CSV with NaN"),
        pytest.param(CSV, "request_id,value\na,-inf\n", "value is -inf", id="CSV with infinity"),
        pytest.param(CSV, "request_id,value\na,[1\n", "begins as a list", id="CSV with half a list"),
        pytest.param(CSV, 'request_id,value\na,"1\n', "line 2 of the CSV cannot be read", id="CSV with half a quote"),
        pytest.param(CSV, b"request_id,value\n\xff,1\n", "no UTF-8", id="CSV in another encoding"),
        pytest.param(LINES, '{"request_id": "a", "value": 1}\n{\n', "line 2 is no JSON", id="half a line"),
        pytest.param(LINES, '{"request_id": "a", "value": Infinity}\n', "Infinity", id="infinity in a line"),
        pytest.param(PARQUET, b"PAR1", "no Parquet file", id="no Parquet"),
    ],
)
def test_what_is_no_batch_is_refused_with_a_sentence(
    caller: APIClient, content_type: str, body: str | bytes, sentence: str
) -> None:
    answered = caller.post(URL, body, content_type=content_type)
    assert answered.status_code == 400
    assert sentence in answered.json()["error"]["message"]
    assert not Label.objects.exists()


def test_more_labels_than_one_batch_has_are_refused(caller: APIClient) -> None:
    body = {"labels": [{"request_id": f"r{number}", "value": 1} for number in range(10_001)]}
    answered = caller.post(URL, json.dumps(body), content_type="application/json")
    assert answered.status_code == 400
    assert "more than 10,000 labels" in answered.json()["error"]["message"]


def test_another_type_is_refused_with_those_that_are_taken(caller: APIClient) -> None:
    answered = caller.post(URL, "labels: []", content_type="application/yaml")
    assert answered.status_code == 415
    assert CSV in answered.json()["error"]["message"]


def test_a_repeated_request_with_a_key_gets_the_first_answer(caller: APIClient) -> None:
    headers = {"idempotency-key": "monday", "x-content-sha256": "0" * 64}
    body = {"labels": [{"request_id": "a", "value": 1}]}
    first = caller.post(URL, body, format="json", headers=headers)
    again = caller.post(URL, body, format="json", headers=headers)
    assert first.json() == again.json() == {"received": 1, "changed": 0, "repeated": 0}
    assert again.headers["Idempotency-Replayed"] == "true"


def test_what_became_of_labels_is_shown(caller: APIClient, api: Api) -> None:
    caller.post(URL, {"labels": [{"request_id": "a", "value": 3}, {"request_id": "b", "value": 3}]}, format="json")
    reader = api(Scope.READ)
    assert reader.get(URL).json()["answers"] is None
    service = Label.objects.all()[0].service
    keep(service, rows=5, bytes=700, left_out=2, unmatched=4)
    caller.put(f"{URL}/scorers/right", {"kind": "accuracy"}, format="json")
    answer(service, "a")
    join(timezone.now())
    shown = reader.get(URL).json()
    assert [shown[name] for name in ("received", "joined", "waiting", "unmatched")] == [6, 1, 1, 4]
    assert shown["answers"] == {"rows": 5, "bytes": 700, "left_out": 2}
    assert [each["name"] for each in shown["scorers"]] == ["right"]


def test_readers_send_none(caller: APIClient, api: Api) -> None:
    assert api(Scope.READ).post(URL, {"labels": []}, format="json").status_code == 403
    assert caller.post(URL.replace("digits", "letters"), {"labels": []}, format="json").status_code == 404
