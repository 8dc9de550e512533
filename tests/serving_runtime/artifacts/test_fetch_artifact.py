"""A model is fetched whole or not at all, whatever happens on the way; from a real server, into real files."""

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from serving_runtime.artifacts.download import NoRoomError, Patience, TooLargeError
from serving_runtime.artifacts.fetch_artifact import Order, fetch
from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.artifacts.web import WebFile
from serving_runtime.common.errors import ModelError
from tests.servers.broken_web import Served, serving
from tests.serving_runtime._support.digests import digest_for, left

MODEL = os.urandom(300_000)
QUICK = Patience(tries=3, first_s=0.001, longest_s=0.001)


DIGEST = digest_for({"model.onnx": MODEL})


@pytest.fixture
def server() -> Iterator[Served]:
    with serving(MODEL) as served:
        yield served


def order(served: Served, said: list[str] | None = None, digest: str = DIGEST) -> Order:
    return Order(digest, lambda: [WebFile(served.url)], (said if said is not None else []).append, QUICK)


def test_a_file_is_there_with_its_digest_and_nothing_beside_it(server: Served, tmp_path: Path) -> None:
    folder = fetch(order(server), tmp_path)
    assert (folder / "model.onnx").read_bytes() == MODEL
    assert left(tmp_path) == [f"{DIGEST[7:]}/model.onnx"]


def test_what_is_there_is_not_fetched_again(server: Served, tmp_path: Path) -> None:
    fetch(order(server), tmp_path)
    fetch(order(server), tmp_path)
    assert len(server.asked) == 1


def test_a_broken_connection_is_taken_up_where_it_ended(server: Served, tmp_path: Path) -> None:
    server.cuts = [1000, 50_000]
    said: list[str] = []
    fetch(order(server, said), tmp_path)
    assert [asked for asked, _ in server.asked] == ["", "bytes=1000-", "bytes=51000-"]
    assert sum("trying again" in line for line in said) == 2


def test_tries_that_bring_something_are_not_counted(server: Served, tmp_path: Path) -> None:
    server.cuts = [1000] * 20
    fetch(order(server), tmp_path)
    assert len(server.asked) == 21


def test_a_server_that_does_not_come_back_is_given_up_and_what_came_stays(server: Served, tmp_path: Path) -> None:
    server.cuts, server.statuses = [1000], []
    with pytest.raises(ModelError, match=r"after 3 tries in a row, with 1000 bytes here: .*answered 503"):
        fetch(Order(DIGEST, lambda: [_Then503(server)], lambda _line: None, QUICK), tmp_path)
    server.statuses = []
    fetch(order(server), tmp_path)
    assert server.asked[-1][0] == "bytes=999-"


class _Then503:
    """The file, whose server has gone away after the first answer."""

    path = ""

    def __init__(self, served: Served) -> None:
        self._served, self._file = served, WebFile(served.url)

    def __str__(self) -> str:
        return str(self._file)

    @contextmanager
    def open(self, first: int):
        with self._file.open(first) as opened:
            self._served.statuses = [503] * 10
            yield opened


def test_a_process_that_was_killed_is_followed_by_one_that_goes_on(server: Served, tmp_path: Path) -> None:
    part = tmp_path / ".incoming" / DIGEST[7:] / "parts" / "artifact"
    part.parent.mkdir(parents=True)
    part.write_bytes(MODEL[:200_000])
    assert digest_of_folder(fetch(order(server), tmp_path)) == DIGEST
    assert server.asked[0][0] == "bytes=199999-"


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(b"something else" * 100, id="the beginning of another file"),
        pytest.param(MODEL + b"more", id="more than there is"),
        pytest.param(MODEL[:-1] + b"?", id="all of another file"),
    ],
)
def test_what_an_earlier_process_left_of_another_file_hurts_nobody(
    server: Served, tmp_path: Path, there: bytes
) -> None:
    part = tmp_path / ".incoming" / DIGEST[7:] / "parts" / "artifact"
    part.parent.mkdir(parents=True)
    part.write_bytes(there)
    assert digest_of_folder(fetch(order(server), tmp_path)) == DIGEST


def test_a_server_that_knows_no_ranges_sends_all_again(server: Served, tmp_path: Path) -> None:
    server.cuts, server.ignores_ranges = [1000], True
    assert digest_of_folder(fetch(order(server), tmp_path)) == DIGEST


def test_another_digest_is_refused_and_nothing_of_it_stays(server: Served, tmp_path: Path) -> None:
    other = "sha256:" + "0" * 64
    with pytest.raises(ModelError, match=f"expected {other}, found {DIGEST}"):
        fetch(order(server, digest=other), tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        pytest.param(404, "answered 404 Not Found: that is the sentence", id="not there"),
        pytest.param(403, "answered 403 Forbidden: that is the sentence", id="not allowed"),
    ],
)
def test_a_refusal_is_told_at_once(server: Served, tmp_path: Path, status: int, sentence: str) -> None:
    server.statuses = [status]
    with pytest.raises(ModelError, match=sentence):
        fetch(order(server), tmp_path)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_what_may_pass_is_tried_again(server: Served, tmp_path: Path, status: int) -> None:
    server.statuses = [status]
    fetch(order(server), tmp_path)
    assert len(server.asked) == 2


def test_more_bytes_than_allowed_are_refused(server: Served, tmp_path: Path) -> None:
    with pytest.raises(TooLargeError, match="300000 bytes or more, 1000 are allowed"):
        fetch(order(server), tmp_path, max_bytes=1000)
    assert left(tmp_path) == []


def test_the_token_is_read_for_each_request_and_told_to_nobody(server: Served, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    server.cuts = [10]
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        token.write_text("two\n")

    fetch(Order(DIGEST, lambda: [WebFile(server.url, token)], say, QUICK), tmp_path / "place")
    assert server.asked[-1][1] == "Bearer two"
    assert "one" not in " ".join(said)


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own is mounted, which takes root")
def test_a_full_disk_is_told_and_nothing_stays_on_it(server: Served, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=True)
    try:
        with pytest.raises(NoRoomError, match=r"no room in .* 300000 bytes or more; give the volume more"):
            fetch(order(server), disk)
        assert left(disk) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


FILES = {"config.pbtxt": b"max_batch_size: 4", "1/model.onnx": MODEL}


def _tar(prefix: str, mode: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in FILES.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _zip() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize(
    ("filename", "content"),
    [
        pytest.param("model.tar", _tar("", "w"), id="tar"),
        pytest.param("digits.tar.gz", _tar("digits/", "w:gz"), id="compressed, with a folder around it"),
        pytest.param("digits.tgz", _tar("./", "w:gz"), id="from the present folder"),
        pytest.param("digits.zip", _zip(), id="zip"),
    ],
)
def test_an_archive_becomes_the_folder_that_was_registered(filename: str, content: bytes, tmp_path: Path) -> None:
    with serving(content, filename) as served:
        served.cuts = [5000]
        folder = fetch(order(served, digest=digest_for(FILES)), tmp_path)
    assert left(folder) == sorted(FILES)


def _hostile(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(_hostile("../outside"), "not a path below its top", id="a path out of the folder"),
        pytest.param(_hostile("/etc/outside"), "not a path below its top", id="an absolute path"),
        pytest.param(_hostile("link", tarfile.SYMTYPE), "no plain file", id="a link"),
        pytest.param(b"no archive at all" * 100, "cannot be unpacked", id="no archive"),
    ],
)
def test_an_odd_archive_is_refused_and_nothing_of_it_stays(content: bytes, sentence: str, tmp_path: Path) -> None:
    with serving(content, "model.tar") as served, pytest.raises(ModelError, match=sentence):
        fetch(order(served), tmp_path)
    assert left(tmp_path) == []


def _prepare(served: Served, tmp_path: Path, *more: str, digest: str = DIGEST) -> int:
    named = [f"--registry={served.url}", f"--digest={digest}", "--name=digits", "--version=3", "--fetch-tries=2"]
    return main(["prepare", *named, f"--model-repository={tmp_path / 'models'}", *more])


def test_prepare_leaves_the_model_and_nothing_else(server: Served, tmp_path: Path) -> None:
    assert _prepare(server, tmp_path) == 0
    assert left(tmp_path / "models") == ["digits/3/model.onnx"]
    assert list((tmp_path / "models").iterdir()) == [tmp_path / "models" / "digits"]


def test_prepare_tells_why_not_in_one_sentence(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = tmp_path / "message"
    other = "sha256:" + "0" * 64
    assert _prepare(server, tmp_path, f"--termination-message={message}", digest=other) == 2
    assert message.read_text().strip() == (
        f"what was fetched is not the model that was registered: expected {other}, found {DIGEST}; push the model "
        "version again"
    )
    assert message.read_text().strip() in capsys.readouterr().err
    assert not (tmp_path / "models" / "digits").exists()


def test_prepare_refuses_what_is_no_digest(server: Served, tmp_path: Path) -> None:
    assert _prepare(server, tmp_path, digest="../../elsewhere") == 2
    assert server.asked == []


@pytest.mark.parametrize("kills", [3])
def test_prepare_may_be_killed_at_any_time(server: Served, tmp_path: Path, kills: int) -> None:
    command = [sys.executable, "-m", "serving_runtime", "prepare", f"--registry={server.url}", f"--digest={DIGEST}"]
    command += ["--name=digits", "--version=3", f"--model-repository={tmp_path}"]
    server.content, server.cuts = MODEL, [60_000] * 100
    for _ in range(kills):
        count = len(server.asked)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while len(server.asked) == count and process.poll() is None:
            pass
        process.kill()
        process.wait()
        assert not (tmp_path / "digits").exists() or process.returncode == 0
    server.cuts = []
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert (tmp_path / "digits" / "3" / "model.onnx").read_bytes() == MODEL
    assert left(tmp_path) == ["digits/3/model.onnx"]
