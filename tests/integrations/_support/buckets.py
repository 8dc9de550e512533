"""Buckets of an S3 and a Google Cloud Storage that run here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.servers import buckets


@dataclass(frozen=True)
class Bucket:
    """The bucket `models` of one kind of store; `put` and `remove` change it."""

    scheme: str
    put: Callable[[str, bytes], Any]


def environment(servers: dict[str, str]) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_S3": servers["s3"],
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "STORAGE_EMULATOR_HOST": servers["gs"],
    }


def s3_bucket(url: str) -> Bucket:
    import boto3  # noqa: PLC0415 - its import takes a second, which others need not wait

    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="models")
    for found in client.list_objects_v2(Bucket="models").get("Contents", []):
        client.delete_object(Bucket="models", Key=found["Key"])
    return Bucket("s3", lambda key, content: client.put_object(Bucket="models", Key=key, Body=content))


def gs_bucket(url: str) -> Bucket:
    import httpx  # noqa: PLC0415

    http = httpx.Client(base_url=url, trust_env=False)
    http.post("/storage/v1/b", json={"name": "models"})
    for found in http.get("/storage/v1/b/models/o").json().get("items", []):
        http.delete(f"/storage/v1/b/models/o/{found['name'].replace('/', '%2F')}")

    def put(key: str, content: bytes) -> None:
        query = {"uploadType": "media", "name": key}
        http.post("/upload/storage/v1/b/models/o", params=query, content=content).raise_for_status()

    return Bucket("gs", put)


@pytest.fixture(scope="module")
def bucket_servers() -> Iterator[dict[str, str]]:
    with buckets.s3() as s3, buckets.gs() as gs:
        yield {"s3": s3, "gs": gs}


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, bucket_servers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Give an empty bucket, and the environment by which a process finds it."""
    for name, value in environment(bucket_servers).items():
        monkeypatch.setenv(name, value)
    return s3_bucket(bucket_servers["s3"]) if request.param == "s3" else gs_bucket(bucket_servers["gs"])
