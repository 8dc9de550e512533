"""Model repository location: parses --model-repository."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from urllib.parse import urlsplit

from serving_runtime.common.errors import ModelError


@dataclass(frozen=True, slots=True)
class Bucket:
    """A folder in an object store.

    Attributes:
        scheme: s3 or gs.
        endpoint: URL of the server; empty for the store's default.
        path: bucket and folder, without slashes around it.
    """

    scheme: str
    endpoint: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.endpoint}{'/' if self.endpoint else ''}{self.path}"

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


Location: TypeAlias = Path | Bucket


def parse(text: str) -> Location:
    """Return a folder, or for s3:// and gs:// a bucket; raises ModelError.

    The S3 server may be named (Triton: model repository): s3://http://host:port/bucket/path, s3://host:port/bucket/path.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return Path(text)
    if scheme == "as":
        raise ModelError(f"'{text}': Azure Storage (as://) is not supported; use a folder, s3:// or gs://")
    if scheme not in ("s3", "gs"):
        raise ModelError(f"'{text}': {scheme}:// is not supported; use a folder, s3:// or gs://")
    endpoint = ""
    if scheme == "s3":
        endpoint, rest = _endpoint(rest)
    path = rest.strip("/")
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        raise ModelError(f"'{text}' names no bucket, or an odd path in it; write {scheme}://bucket/path")
    return Bucket(scheme, endpoint, path)


def _endpoint(rest: str) -> tuple[str, str]:
    """Return the server in the text after s3://, and bucket and path."""
    for scheme in ("http://", "https://"):
        if rest.startswith(scheme):
            host, _, path = rest.removeprefix(scheme).partition("/")
            return scheme + _checked(host), path
    host, _, path = rest.partition("/")
    if ":" in host:  # bucket names contain no colon
        return f"http://{_checked(host)}", path
    return "", rest


def _checked(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        sound = bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        sound = False
    if not sound:
        raise ModelError(f"'{host}' is no host:port of an S3 server")
    return host
