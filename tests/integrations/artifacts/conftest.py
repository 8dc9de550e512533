"""Buckets of an S3 and a Google Cloud Storage, for tests that take `bucket`."""

from tests.integrations._support.buckets import bucket, bucket_servers

__all__ = ["bucket", "bucket_servers"]
