"""Repositories in servers that speak S3 and Google Cloud Storage's protocol, over real sockets."""

import importlib.util
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog import bucket_repository as module
from serving_runtime.engine.catalog.repository_location import Bucket, parse
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from tests.servers import buckets
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import infer, output, states
from tests.serving_runtime._support.processes import command, server

pytestmark = pytest.mark.feature("C26")


@dataclass(frozen=True)
class Store:
    """An empty bucket: where a repository in it is, and how its objects change."""

    place: str
    put: Callable[[str, bytes], Any]
    remove: Callable[[str], Any]

    def upload(self, folder: Path, name: str) -> None:
        """Put a model's folder into the repository."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"repo/{name}/{file.relative_to(folder).as_posix()}", file.read_bytes())

    @property
    def bucket(self) -> Bucket:
        bucket = parse(self.place)
        assert isinstance(bucket, Bucket)
        return bucket


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    with buckets.s3() as s3, buckets.gs() as gs:
        yield {"s3": s3, "gs": gs}


@pytest.fixture(params=["s3", "gs"])
def store(request: pytest.FixtureRequest, servers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", servers["gs"])
    return s3_store(servers["s3"]) if request.param == "s3" else gs_store(servers["gs"])


def s3_store(url: str) -> Store:
    import boto3  # noqa: PLC0415 - its import takes a second, which others need not wait

    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="models")
    for found in client.list_objects_v2(Bucket="models").get("Contents", []):
        client.delete_object(Bucket="models", Key=found["Key"])
    return Store(
        f"s3://{url}/models/repo",
        lambda key, body: client.put_object(Bucket="models", Key=key, Body=body),
        lambda key: client.delete_object(Bucket="models", Key=key),
    )


def gs_store(url: str) -> Store:
    httpx.post(f"{url}/storage/v1/b", json={"name": "models"})
    for found in httpx.get(f"{url}/storage/v1/b/models/o").json().get("items", []):
        httpx.delete(f"{url}/storage/v1/b/models/o/{quote(found['name'], safe='')}").raise_for_status()

    def put(key: str, body: bytes) -> None:
        place = f"{url}/upload/storage/v1/b/models/o?uploadType=media&name={quote(key, safe='')}"
        httpx.post(place, content=body).raise_for_status()

    def remove(key: str) -> None:
        httpx.delete(f"{url}/storage/v1/b/models/o/{quote(key, safe='')}").raise_for_status()

    return Store("gs://models/repo", put, remove)


def model(folder: Path, *versions: int, width: int = 3, config: str = "# as it is found") -> Path:
    onnx_models.configure(folder, config)
    for version in versions:
        onnx_models.mlp(folder / str(version) / "model.onnx", (4, width))
    return folder


async def started(store: Store, tmp_path: Path, mode: ControlMode) -> Engine:
    engine = Engine([store.bucket], LoadSettings(), Control(mode, cache_directory=tmp_path / "cache"))
    await engine.load_all()
    return engine


async def test_models_are_served_from_a_bucket_and_followed(store: Store, tmp_path: Path) -> None:
    store.upload(model(tmp_path / "m", 1, 2, config="version_policy { all { } }"), "m")
    store.put("repo/README.md", b"no model")
    store.put("repo/.hidden/1/model.onnx", b"no model")
    engine = await started(store, tmp_path, ControlMode.POLL)
    assert await states(engine) == {("m", "1"): ("READY", ""), ("m", "2"): ("READY", "")}
    assert output(await infer(engine, "m")).shape == (1, 3)
    first, second = engine.servable("m", "1"), engine.servable("m", "2")

    await engine.poll()
    assert engine.servable("m", "2") is second, "nothing has changed"
    store.put("repo/m/2/model.onnx", model(tmp_path / "new", 2, width=5).joinpath("2/model.onnx").read_bytes())
    store.upload(model(tmp_path / "other", 1), "other")
    await engine.poll()
    assert output(await infer(engine, "m")).shape == (1, 5)
    assert output(await infer(engine, "other")).shape == (1, 3)
    assert engine.servable("m", "1") is first, "what has not changed is neither fetched nor opened again"

    store.put("repo/m/2/model.onnx", b"no model")
    store.remove("repo/other/1/model.onnx")
    store.remove("repo/other/config.pbtxt")
    await engine.poll()
    assert output(await infer(engine, "m")).shape == (1, 5), "the old model stays"
    assert (await states(engine))["other", "1"][0] != "READY"
    engine.close()


async def test_only_the_versions_that_are_served_are_fetched_and_not_fetched_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upload(model(tmp_path / "m", 1, 2), "m")
    engine = await started(store, tmp_path, ControlMode.EXPLICIT)
    await engine.load("m")
    (copy,) = (tmp_path / "cache").glob("*/m/*")
    assert sorted(path.name for path in copy.iterdir()) == ["2", "config.pbtxt"]
    engine.close()

    monkeypatch.setattr(module.BucketRoot, "_get", None)  # whoever fetches now fails
    again = await started(store, tmp_path, ControlMode.EXPLICIT)
    await again.load("m")
    assert output(await infer(again, "m")).shape == (1, 3)
    again.close()


async def test_the_cache_holds_the_model_that_is_served_and_the_one_before(store: Store, tmp_path: Path) -> None:
    engine = await started(store, tmp_path, ControlMode.EXPLICIT)
    for width in (3, 4, 5, 6):
        store.upload(model(tmp_path / "m", 1, width=width), "m")
        await engine.load("m")
    assert output(await infer(engine, "m")).shape == (1, 6)
    assert len(list((tmp_path / "cache").glob("*/m/*"))) == 2
    engine.close()


async def test_without_a_folder_for_it_the_cache_ends_with_the_engine(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    store.upload(model(tmp_path / "m", 1), "m")
    engine = Engine([store.bucket], LoadSettings())
    assert await engine.load_all() == []
    assert len(list(scratch.glob("*/*/m"))) == 1
    engine.close()
    assert list(scratch.iterdir()) == []


async def test_an_object_that_is_replaced_while_it_is_fetched_is_not_served(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upload(model(tmp_path / "m", 1), "m")
    engine = await started(store, tmp_path, ControlMode.EXPLICIT)
    listed = module.BucketRoot._list

    def replacing(self: module.BucketRoot, name: str) -> dict[str, dict[str, Any]]:
        found = listed(self, name)
        store.put("repo/m/1/model.onnx", b"another")
        return found

    monkeypatch.setattr(module.BucketRoot, "_list", replacing)
    with pytest.raises(ModelError, match="was changed while it was fetched"):
        await engine.load("m")
    assert [path for path in (tmp_path / "cache").glob("*/m/*/*") if path.name == "1"] == []
    engine.close()


async def test_an_object_that_comes_with_other_content_is_not_served(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upload(model(tmp_path / "m", 1), "m")
    engine = await started(store, tmp_path, ControlMode.EXPLICIT)
    check = module._check

    def spoilt(file: Path, info: dict[str, Any], where: str) -> None:
        if file.name == "model.onnx":
            content = file.read_bytes()
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        check(file, info, where)

    monkeypatch.setattr(module, "_check", spoilt)
    with pytest.raises(ModelError, match="came with other content than the store says"):
        await engine.load("m")
    engine.close()


async def test_a_bucket_that_is_not_there_is_told(store: Store) -> None:
    bucket = Bucket(store.bucket.scheme, store.bucket.endpoint, "nowhere/repo")
    engine = Engine([bucket], LoadSettings())
    with pytest.raises(ModelError, match=r"--model-repository .*nowhere/repo"):
        await engine.load_all()
    engine.close()


def test_a_library_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for place, package in (("s3://b", r"s3fs: pip install 'fairlead\[s3\]'"), ("gs://b", "gcsfs: pip install")):
        bucket = parse(place)
        assert isinstance(bucket, Bucket)
        with pytest.raises(ModelError, match=rf"--model-repository {place} needs the package {package}"):
            module.BucketRoot(bucket, tmp_path)


def test_a_real_server_serves_from_a_bucket(store: Store, tmp_path: Path) -> None:
    store.upload(model(tmp_path / "m", 1), "m")
    with server(store.place, scratch=tmp_path) as process:  # type: ignore[arg-type]
        x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
        answer = httpx.post(f"{process.url}/v2/models/m/infer", json={"inputs": [x]})
        assert answer.json()["outputs"][0]["shape"] == [1, 3]


def test_a_place_that_is_not_offered_ends_the_start() -> None:
    done = subprocess.run(
        command("as://account/models"),  # type: ignore[arg-type]
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Azure Storage (as://) is not supported" in done.stderr) == (1, True)


def test_a_start_that_fails_leaves_no_copies_behind(store: Store, tmp_path: Path) -> None:
    store.put("repo/m/1/model.onnx", b"no model")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    arguments = command(store.place)  # type: ignore[arg-type]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, "is not an ONNX model" in done.stderr) == (1, True), done.stderr
    assert list(tmp_path.glob("fairlead-*")) == []
