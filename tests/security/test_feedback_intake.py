"""Attacks by bodies of labels: large ones, small ones that unpack to large ones, and damaged ones."""

import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.errors import FairleadError, InvalidInput, TooLarge
from common.labels import MOST_ROWS
from feedback.api.label_bodies import MAX_BYTES
from feedback.api.parquet_labels import parquet_rows
from feedback.domain.parquet_pages import check_pages
from feedback.models import Label
from tests import scenes

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/feedback"
CSV, LINES, PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"


@pytest.fixture
def caller(db: None, api: Api) -> APIClient:
    scenes.service()
    return api(Scope.WRITE)


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files  # noqa: PLC0415 - where it is installed

    content = io.BytesIO()
    files.write_table(arrow.table(columns), content, **options)
    return content.getvalue()


@pytest.mark.parametrize("content_type", ["application/json", CSV, LINES, PARQUET])
def test_a_body_beyond_the_limit_is_refused(caller: APIClient, content_type: str) -> None:
    answered = caller.post(URL, b"x" * (MAX_BYTES + 1), content_type=content_type)
    assert answered.status_code == 413
    assert "more than the 25 MiB" in answered.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param("application/json", '{"labels":' + "[" * 200_000, id="deep JSON"),
        pytest.param(LINES, '{"request_id": "a", "value": ' + "[" * 200_000, id="deep line"),
        pytest.param(CSV, "request_id,value\na," + "[" * 100_000, id="deep cell"),
        pytest.param(CSV, "request_id,value\na," + "x" * 1_000_000, id="long cell"),
        pytest.param(CSV, "request_id,value\na\0,1", id="zero byte"),
        pytest.param(CSV, "request_id," * 100_000, id="many columns"),
        pytest.param(LINES, '{"request_id": "a", "value": ' + "9" * 100_000 + "}", id="long number"),
        pytest.param(LINES, '{"request_id": "\\ud800", "value": 1}', id="half a surrogate pair"),
        pytest.param(LINES, '{"request_id": "a", "value": "\\u202e"}', id="text that turns the direction"),
        pytest.param(CSV, "request_id,value\n" + "a,1\n" * (MOST_ROWS + 1), id="many rows"),
    ],
)
def test_bodies_that_are_made_to_break_the_parser_are_refused(caller: APIClient, content_type: str, body: str) -> None:
    answered = caller.post(URL, body, content_type=content_type)
    assert answered.status_code == 400, answered.content[:300]
    assert len(answered.json()["error"]["message"]) < 1000
    assert not Label.objects.exists()


def repeated(text: str, times: int) -> Any:
    """Return a column in which all rows have one text, which is stored once."""
    arrow = pytest.importorskip("pyarrow")
    return arrow.DictionaryArray.from_arrays(arrow.array([0] * times, arrow.int32()), [text])


BOMBS = {
    "pages that unpack to much": lambda: parquet(
        {"request_id": ["x" * 5_000] * 60_000, "value": [1] * 60_000}, compression="zstd", use_dictionary=False
    ),
    "many rows": lambda: parquet({"request_id": repeated("x", 500_000), "value": [1] * 500_000}, store_schema=False),
    "a long text that all rows have": lambda: parquet(
        {"request_id": repeated("x" * 2_000_000, 90_000), "value": [1] * 90_000}, store_schema=False
    ),
    "a long value that all rows have": lambda: parquet(
        {"request_id": repeated("x", 90_000), "value": repeated("x" * 500_000, 90_000)}, store_schema=False
    ),
    "a list of millions": lambda: parquet({"request_id": ["x"], "value": [[0] * 7_000_000]}),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_parquet_file_that_unpacks_to_a_large_one_is_refused_in_little_memory(bomb: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    content = BOMBS[bomb]()
    assert len(content) < 1 << 20
    before = arrow.total_allocated_bytes()
    rows = parquet_rows(content)
    with pytest.raises((TooLarge, InvalidInput)):
        next(rows)
    assert arrow.total_allocated_bytes() - before < 64 << 20


def test_sizes_are_read_from_the_pages_and_not_from_the_footer() -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet as files  # noqa: PLC0415 - where it is installed

    table = {"request_id": [f"r{number}" for number in range(50_000)], "value": ["cat", "dog"] * 25_000}
    content = parquet(table, compression="zstd", data_page_size=10_000)
    metadata = files.ParquetFile(io.BytesIO(content)).metadata
    for column in range(2):
        chunk = metadata.row_group(0).column(column)
        begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        pages = content[begin : begin + chunk.total_compressed_size]
        headers = check_pages(pages, most_values=100_000)
        assert 0.9 * chunk.total_uncompressed_size < headers <= chunk.total_uncompressed_size
        with pytest.raises(InvalidInput, match="more values"):
            check_pages(pages, most_values=100)
    with pytest.raises(InvalidInput):
        check_pages(b"\x15" * 100, most_values=100)


def test_nested_and_unknown_types_are_refused(caller: APIClient) -> None:
    for column in ([{"class": 1}], [[[1]]], [b"\0"], [["a"]], [True]):
        answered = caller.post(URL, parquet({"request_id": ["a"], "value": column}), content_type=PARQUET)
        assert answered.status_code == 400
        assert "the column value of the Parquet file has the type" in answered.json()["error"]["message"]


def test_damaged_parquet_files_are_refused() -> None:
    content = parquet({"request_id": [f"r{number}" for number in range(500)], "value": list(range(500))})
    chance = random.Random(3)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(FairleadError):
            assert sum(1 for _ in parquet_rows(bytes(damaged))) <= MOST_ROWS


def test_one_callers_labels_are_not_seen_by_a_caller_of_another_namespace(caller: APIClient, api: Api) -> None:
    body = json.dumps({"labels": [{"request_id": "a", "value": "secret"}]})
    assert caller.post(URL, body, content_type="application/json").status_code == 202
    shown = api(Scope.READ).get(URL).content
    assert b"secret" not in shown
