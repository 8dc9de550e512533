"""Attacks on a model pool: names that are paths, a runtime that wants files of the fetcher, artifacts with links.

The runtime is in the sandbox and may be taken over by a model; the fetcher has the network and the credentials.
"""

import asyncio
import contextlib
import json
import os
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.pools import catalog, names
from serving_runtime.pools.config_maps import ConfigMapCatalog
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place

SECRET = "the fetcher's token"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place.below(tmp_path)
    yield found
    pools.remove(found)


def answers(place: Place, *asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Send requests as a runtime that was taken over may, and return the answers in the order of the requests."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(pools.DEADLINE_S)
        sock.connect(str(place.socket))
        file = sock.makefile("rwb")
        for number, content in enumerate(asked):
            file.write(json.dumps({"id": number, **content}).encode() + b"\n")
        file.flush()
        found = [json.loads(file.readline()) for _ in asked]
    return sorted(found, key=lambda answer: answer["id"])


HOSTILE = (
    *("../../etc/passwd", "a/../b.c", "..", ".", "a.b/../../c", "a.b\0c", "a\0.b", "", "a", "a.b.c", "A.b", "a.b\n"),
    *(f"a.{'b' * 64}", f"{'a' * 100_000}.b", "a.b@3", "/etc.passwd", "-a.b", "a.-b", "a%2eb.c", "\uff41.b"),
)


def test_a_name_is_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    for name in HOSTILE:
        assert not names.is_model(name)
        assert names.key_of(f"{name}@1") is None
        assert catalog.find(tmp_path / "catalog", name) is None
        beside = ConfigMapCatalog("default", "warm", "http://127.0.0.1:1", tmp_path)  # where nothing listens
        assert asyncio.run(beside.find(name)) is None
        assert beside.reads == 0
    for service in (b"a/b/c", b"../b", b"a/..", b"a/b\0", b"a/b\n", b"a", b"", b"a/" + b"b" * 64):
        assert names.service_in(service) is None
        assert names.mounted(b"/serving/" + service.rstrip(b"/c") + b"\0/v2") is None


def test_a_runtime_names_models_and_gets_no_files_of_the_fetcher(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(SECRET)
    pools.write(place.catalog, "a.b", {1: pools.version(pools.artifact(tmp_path / "m"))})
    with pools.fetcher_here(place):
        refused: list[dict[str, Any]] = [
            {"model": str(secret), "version": 1},
            {"model": "a.b", "version": "../../token"},
            {"model": "a.b", "version": -1},
            {"model": ["a.b"], "version": 1},
            {"look": "../token"},
            {"look": "a.b/../../../token"},
            {"origin": str(secret), "digest": "sha256:" + "0" * 64},
            {"hold": ["../../token"]},
            {"release": "../../token"},
            {"hold": "a" * 64},
        ]
        for answer in answers(place, *refused):
            assert answer["error"]["kind"] == "invalid"
            assert SECRET not in json.dumps(answer)
        (found,) = answers(place, {"model": "a.b", "version": 1, "folder": "/", "origin": str(secret)})
        assert Path(found["folder"]).is_relative_to(place.cache.absolute())


def test_a_line_without_end_closes_the_connection_and_others_are_served(place: Place, tmp_path: Path) -> None:
    pools.write(place.catalog, "a.b", {1: pools.version(pools.artifact(tmp_path / "m"))})
    with pools.fetcher_here(place), socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(pools.DEADLINE_S)
        sock.connect(str(place.socket))
        with contextlib.suppress(OSError):  # reset, or a broken pipe
            for _ in range(64):
                sock.sendall(b"x" * 65536)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert answers(place, {"look": "a.b"})[0]["default"] == 1


def test_links_lead_out_of_no_artifact_and_of_no_catalog(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(SECRET)
    for kind in ("link", "folder", "pipe", "itself"):
        (tmp_path / kind).mkdir()
    (tmp_path / "link" / "model.onnx").symlink_to(secret)
    (tmp_path / "folder" / "1").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe" / "model.onnx")
    (tmp_path / "whole.onnx").symlink_to(secret)
    with tarfile.open(tmp_path / "packed.tar", "w") as archive:
        member = tarfile.TarInfo("model.onnx")
        member.type, member.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(member)
    with tarfile.open(tmp_path / "climbing.tar", "w") as archive:
        archive.add(secret, "../../model.onnx")
    origins = ["link", "folder", "pipe", "whole.onnx", "packed.tar", "climbing.tar", "relative/../token"]
    for number, origin in enumerate(origins):
        entry = pools.version(tmp_path / origin, "sha256:" + "0" * 64)
        pools.write(place.catalog, f"a.m{number}", {1: entry})
    pools.write(place.catalog, "a.file", {1: pools.version("file:///etc/passwd", "sha256:" + "0" * 64)})
    document = catalog.place(place.catalog, "a.linked")
    document.parent.mkdir(parents=True, exist_ok=True)
    document.symlink_to(secret)
    with pools.fetcher_here(place, patience=pools.ONE_TRY):
        asked = [{"model": f"a.m{number}", "version": 1} for number in range(len(origins))]
        found = answers(place, *asked, {"model": "a.file", "version": 1}, {"look": "a.linked"})
    assert [answer["error"]["kind"] for answer in found] == ["corrupt"] * len(found)
    assert SECRET not in json.dumps(found)
    assert not [path for path in place.cache.rglob("*") if path.is_file()]


def test_a_config_of_the_catalog_names_no_other_model(place: Place, tmp_path: Path) -> None:
    entry = pools.version(pools.artifact(tmp_path / "m"), name="../../other", max_batch_size=8)
    pools.write(place.catalog, "a.b", {1: entry})
    with pools.fetcher_here(place):
        (found,) = answers(place, {"model": "a.b", "version": 1})
    assert 'name: "b"' in (Path(found["folder"]) / "config.pbtxt").read_text()
