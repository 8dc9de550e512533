"""A service whose model is in a bucket: fetched from a server that speaks S3, served, rolled on to the next prefix."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform
from tests.servers import buckets

pytestmark = pytest.mark.e2e

FILE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: digits}
spec: {predictor: {model: {modelFormat: {name: onnx}, storageUri: "%s"}}}
"""


@pytest.fixture
def platform(tmp_path: Path, models: Path) -> Iterator[Platform]:
    """Give a platform that may import from the bucket `models`, which has two of the demo's models."""
    import boto3  # noqa: PLC0415 - it takes a second

    with buckets.s3() as url:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        store = boto3.client("s3", endpoint_url=url, aws_access_key_id="key", aws_secret_access_key="secret")
        store.create_bucket(Bucket="models")
        for number, file in enumerate(sorted(models.glob("*.onnx"))[:2], start=1):
            store.put_object(Bucket="models", Key=f"digits/v{number}/1/model.onnx", Body=file.read_bytes())
        variables = {**keys, "AWS_ENDPOINT_URL_S3": url, "FAIRLEAD_IMPORT_FROM": "s3://models/digits"}
        with started(tmp_path, **variables) as made:
            yield made


def test_a_service_is_served_from_a_bucket_and_goes_on_to_the_next_prefix(platform: Platform) -> None:
    file = platform.home.parent / "service.yaml"
    for number in (1, 2):
        file.write_text(FILE % f"s3://models/digits/v{number}/")
        said = platform.fairlead("services", "apply", "-f", str(file), "--wait", "-o", "json")
        service = json.loads(said.stdout)
        assert (service["phase"], service["model"], service["model_version"]) == ("Ready", "default.digits", number)
        assert "waiting for" in said.stderr
    again = platform.fairlead("services", "apply", "-f", str(file), "--dry-run")
    assert "unchanged" in again.stdout
    shown = json.loads(platform.fairlead("versions", "show", "default.digits", "2", "-o", "json").stdout)
    assert shown["lineage"]["source_uri"] == "s3://models/digits/v2/"
    file.write_text(FILE % "s3://models/secret/")
    refused = platform.fairlead("services", "apply", "-f", str(file), check=False)
    assert refused.returncode == 1
    assert "spec.predictor.model.storageUri" in refused.stderr
    assert "FAIRLEAD_IMPORT_FROM does not allow" in refused.stderr
