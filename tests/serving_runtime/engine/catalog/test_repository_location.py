"""Where a repository is, told from what --model-repository says."""

from pathlib import Path

import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.repository_location import Bucket, parse

pytestmark = pytest.mark.feature("C26")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("models", Path("models")),
        ("/models/here", Path("/models/here")),
        ("s3://bucket", Bucket("s3", "", "bucket")),
        ("s3://bucket/some/models/", Bucket("s3", "", "bucket/some/models")),
        ("s3://http://localhost:9000/bucket/models", Bucket("s3", "http://localhost:9000", "bucket/models")),
        ("s3://https://store.example/bucket", Bucket("s3", "https://store.example", "bucket")),
        ("s3://10.0.0.1:9000/bucket/models", Bucket("s3", "http://10.0.0.1:9000", "bucket/models")),
        ("s3://http://[::1]:9000/bucket", Bucket("s3", "http://[::1]:9000", "bucket")),
        ("gs://bucket/models", Bucket("gs", "", "bucket/models")),
    ],
)
def test_a_place_is_a_folder_or_a_bucket(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("as://account/container", "Azure Storage (as://) is not supported"),
        ("ftp://host/models", "ftp:// is not supported; use a folder, s3:// or gs://"),
        ("s3://", "names no bucket"),
        ("gs:///", "names no bucket"),
        ("s3://http://localhost:9000", "names no bucket"),
        ("s3://http://localhost:9000/", "names no bucket"),
        ("s3://bucket/../other", "an odd path"),
        ("gs://bucket//models", "an odd path"),
        ("s3://http://:9000/bucket", "is no host:port"),
        ("s3://http://host:99999/bucket", "is no host:port"),
        ("s3://http://user@host/bucket", "is no host:port"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(text: str, sentence: str) -> None:
    with pytest.raises(ModelError) as error:
        parse(text)
    assert sentence in str(error.value)


def test_a_bucket_is_shown_as_it_was_written() -> None:
    for text in ("s3://bucket/models", "s3://http://localhost:9000/bucket/models", "gs://bucket/models"):
        assert str(parse(text)) == text
