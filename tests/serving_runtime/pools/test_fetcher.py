"""The fetcher as a process: one fetch a digest, a bounded cache, what is held stays."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.unpack import digest_of_folder
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place, Store, peer


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_version_is_fetched_checked_and_laid_out(place: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    pools.write(
        place.catalog, "ns.svc", {2: pools.version(model), 3: pools.version(model, max_batch_size=8)}, default=2
    )
    with pools.fetcher_here(place), peer(place) as runtime:
        looked = runtime.ask(look="ns.svc")
        assert (looked["default"], looked["pinned"], sorted(looked["versions"])) == (2, False, ["2", "3"])
        default, third = runtime.ask(model="ns.svc", version=None), runtime.ask(model="ns.svc", version=3)
        assert (default["version"], third["version"]) == (2, 3)
        assert looked["versions"]["3"] == third["identity"] != default["identity"]
        assert files(Path(default["folder"])) == ["2/model.onnx"]
        assert files(Path(third["folder"])) == ["3/model.onnx", "config.pbtxt"]
        assert 'name: "svc"' in (Path(third["folder"]) / "config.pbtxt").read_text()
        assert runtime.fails(model="ns.svc", version=4) == (
            "unknown",
            "model 'ns.svc' has no version 4 in the pool's catalog; it has 2, 3",
        )
        assert runtime.fails(look="ns.other")[0] == "unknown"
        assert runtime.fails(model="../svc", version=1)[0] == "invalid"


def test_requests_for_one_digest_share_a_fetch_and_a_gone_store_is_said(place: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    with Store({"/model.onnx": (model / "model.onnx").read_bytes()}) as store:
        entry = pools.version(f"{store.url}/model.onnx", digest_of_folder(model))
        pools.write(place.catalog, "a.x", {1: entry})
        pools.write(place.catalog, "b.x", {1: entry})
        gone = pools.version(f"{store.url}/absent.onnx", "sha256:" + "0" * 64)
        pools.write(place.catalog, "c.x", {1: gone})
        with pools.fetcher_here(place, patience=Patience(tries=1)), peer(place) as runtime:
            store.go_on.clear()
            for number in range(20):
                runtime.send(id=number, model="ab"[number % 2] + ".x", version=1)
            pools.wait_until(lambda: store.asked, "the store is asked")
            store.go_on.set()
            answers = [runtime.read() for _ in range(20)]
            assert sorted(answer["id"] for answer in answers) == list(range(20))
            assert len({answer["folder"] for answer in answers}) == 2
            assert store.asked == ["/model.onnx"]
            kind, message = runtime.fails(model="c.x", version=1)
            assert kind == "unavailable"
            assert "answered 503" in message


def test_a_corrupt_artifact_and_one_larger_than_the_cache_are_refused(place: Place, tmp_path: Path) -> None:
    model, large = pools.artifact(tmp_path / "m"), tmp_path / "large"
    large.mkdir()
    (large / "model.onnx").write_bytes(bytes(200_000))
    pools.write(place.catalog, "a.corrupt", {1: pools.version(model, "sha256:" + "0" * 64)})
    pools.write(place.catalog, "a.large", {1: pools.version(large)})
    with pools.fetcher_here(place, cache_max_bytes=100_000), peer(place) as runtime:
        kind, message = runtime.fails(model="a.corrupt", version=1)
        assert kind == "corrupt"
        assert "what was fetched is not the model that was registered: expected sha256:000" in message
        kind, message = runtime.fails(model="a.large", version=1)
        assert kind == "too-large"
        assert "raise --cache-max-bytes" in message
        assert files(place.cache) == []


def test_the_least_recently_used_leave_the_cache_but_what_is_held_stays(place: Place, tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "model.onnx").write_bytes(bytes([number]) * 40_000)
        pools.write(place.catalog, f"a.m{number}", {1: pools.version(folder)})
    with pools.fetcher(place, "--cache-max-bytes=100000") as process, peer(place) as runtime:

        def bring(number: int) -> Path:
            return Path(runtime.ask(model=f"a.m{number}", version=1)["folder"])

        first, second = bring(0), bring(1)
        assert runtime.fails(model="a.m2", version=1)[0] == "unavailable"  # both are held
        runtime.send(release=digest_of_folder(tmp_path / "0"))
        third = bring(2)
        assert not first.exists()
        assert second.exists()
        assert third.exists()
        process.terminate()
        assert process.wait(pools.DEADLINE_S) == 0
    with pools.fetcher_here(place, cache_max_bytes=100_000), peer(place) as runtime:
        runtime.send(hold=[digest_of_folder(tmp_path / "1")])  # as after a restart of the fetcher
        bring(3)
        assert second.exists()
        assert not third.exists()
        stored = [path for path in (place.cache / "artifacts").iterdir() if not path.name.startswith(".")]
        assert len(stored) == 2


def test_a_fetcher_killed_while_it_fetches_leaves_nothing_to_the_next(place: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    with Store({"/model.onnx": (model / "model.onnx").read_bytes()}) as store:
        pools.write(place.catalog, "a.x", {1: pools.version(f"{store.url}/model.onnx", digest_of_folder(model))})
        with pools.fetcher(place) as process, peer(place) as runtime:
            store.go_on.clear()
            runtime.send(id=1, model="a.x", version=1)
            pools.wait_until(lambda: store.asked, "the store is asked")
            process.kill()
        part = place.cache / "artifacts" / ".incoming" / "half"
        part.mkdir(parents=True, exist_ok=True)
        with pools.fetcher_here(place), peer(place) as runtime:
            assert not part.exists()
            store.go_on.set()
            assert files(Path(runtime.ask(model="a.x", version=1)["folder"])) == ["1/model.onnx"]
            shutil.rmtree(place.catalog)
            assert runtime.fails(look="a.x")[0] == "unknown"


def test_a_runtime_that_ends_while_it_waits_leaves_its_fetch_to_the_next_and_holds_nothing(
    place: Place, tmp_path: Path
) -> None:
    folders = [pools.artifact(tmp_path / str(width), width) for width in (100, 200)]
    files_of = {f"/{number}.onnx": (folder / "model.onnx").read_bytes() for number, folder in enumerate(folders)}
    with Store(files_of) as store:
        for number, folder in enumerate(folders):
            entry = pools.version(f"{store.url}/{number}.onnx", digest_of_folder(folder))
            pools.write(place.catalog, f"a.m{number}", {1: entry})
        with pools.fetcher_here(place, cache_max_bytes=len(files_of["/1.onnx"]) + 100), peer(place) as runtime:
            store.go_on.clear()
            with peer(place) as ending:
                ending.send(id=1, model="a.m0", version=1)
                pools.wait_until(lambda: store.asked, "the store is asked")
            store.go_on.set()
            first = Path(runtime.ask(model="a.m0", version=1)["folder"])
            assert store.asked == ["/0.onnx"]
            runtime.send(release=digest_of_folder(folders[0]))
            assert "folder" in runtime.ask(model="a.m1", version=1)  # there is room: nothing holds the first one
            assert not first.exists()


def test_it_says_why_it_cannot_start(place: Place, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "serving_runtime", "pool-fetcher", f"--catalog={place.catalog}"]
    command += [f"--cache={place.cache}", f"--socket={tmp_path / 'absent' / 's'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "it cannot start" in done.stderr


def test_a_request_that_is_none_gets_an_error(place: Place) -> None:
    with pools.fetcher_here(place), socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(pools.DEADLINE_S)
        sock.connect(str(place.socket))
        answers = sock.makefile("rb")
        for text in ("{", "[]", '{"look": "a.b"}', '{"id": 1, "model": "a.b", "version": true}', '{"release": "x"}'):
            sock.sendall(text.encode() + b"\n")
            assert json.loads(answers.readline())["error"]["kind"] == "invalid"
