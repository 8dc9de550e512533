"""A store for what is fetched, and a web server whose answers a test writes itself."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.uris import parse, parse_prefixes
from integrations import sources
from integrations.artifacts.store import ArtifactStore, StoredArtifact
from integrations.sources.content import CHUNK_BYTES
from tests.integrations._support.buckets import bucket, bucket_servers
from tests.integrations._support.web_servers import WebServer, web_server

__all__ = ["bucket", "bucket_servers"]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """Give a web server on a free port of the loopback address; no proxy is between."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with web_server() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", max_bytes=8 * CHUNK_BYTES, max_files=5)


@pytest.fixture
def fetch(store: ArtifactStore) -> Callable[..., StoredArtifact]:
    """Return a way to fetch a URI; by default all of its scheme and host is allowed."""

    def act(
        uri: str,
        *,
        allowed: list[str],
        filename: str = "",
        sha256: str = "",
        timeout_s: float = 60.0,
        progress: sources.Progress = lambda done, total: None,
    ) -> StoredArtifact:
        order = sources.Order(parse(uri), filename, sha256, "import-1", timeout_s)
        return sources.fetch(order, store, parse_prefixes(allowed), progress)

    return act


@pytest.fixture
def left_behind(store: ArtifactStore) -> Callable[[], list[str]]:
    """Return what there is in the store, whole or half-done."""

    def names() -> list[str]:
        return sorted(
            path.relative_to(store.folder).as_posix() for path in store.folder.rglob("*") if path.name != ".incoming"
        )

    return names
