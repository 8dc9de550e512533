"""Files of a release that somebody changed on their way: each attack is refused by one sentence, before use."""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from releases import ReleaseError, signatures, sums, verify_release
from releases.__main__ import main
from releases.provenance import NAME as PROVENANCE
from releases.signatures import public_key
from tests.releases._support.release import Release, keys, release, repository

__all__ = ["release", "repository"]
CHART, VALUES = "fairlead-0.2.0.tgz", "image-values.yaml"
BILL = "control-plane-0.1.0.cdx.json"
Change = Callable[[Path], object]


def append(folder: Path, name: str, content: bytes) -> None:
    with (folder / name).open("ab") as file:
        file.write(content)


def link(folder: Path, name: str, target: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)


def sum_again(folder: Path, **more: str) -> None:
    """Write the file of sums that fits the files, as somebody without the key can."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del found[sums.NAME]
    found.pop(sums.SIGNATURE, None)
    (folder / sums.NAME).write_bytes(sums.written(found | more))


def changed_envelope(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    envelope = json.loads((folder / PROVENANCE).read_text())
    change(envelope)
    (folder / PROVENANCE).write_text(json.dumps(envelope))


def changed_statement(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    def rewrite(envelope: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    changed_envelope(folder, rewrite)


ON_THE_WAY: list[Any] = [
    pytest.param(lambda folder: append(folder, CHART, b"x"), f"{CHART} is not the file that", id="a changed file"),
    pytest.param(lambda folder: append(folder, "more.sh", b"x"), "more.sh is in the release and not", id="one more"),
    pytest.param(lambda folder: (folder / VALUES).unlink(), f"{VALUES} is in SHA256SUMS and not in", id="one less"),
    pytest.param(lambda folder: (folder / sums.NAME).unlink(), "has no SHA256SUMS", id="no sums"),
    pytest.param(lambda folder: (folder / sums.SIGNATURE).unlink(), "it is not signed", id="no signature"),
    pytest.param(lambda folder: link(folder, CHART, Path("/etc/hostname")), f"{CHART} .* is a link", id="a link"),
    pytest.param(lambda folder: link(folder, sums.NAME, Path("/dev/zero")), "SHA256SUMS .* is a link", id="endless"),
    pytest.param(lambda folder: os.mkfifo(folder / "pipe"), "pipe in the release is a link, folder or", id="a pipe"),
    pytest.param(lambda folder: (folder / "-rf").touch(), "'-rf', which is no plain file name", id="an option"),
    pytest.param(lambda folder: (folder / "a\n b").touch(), r"'a\\n b', which is no plain", id="two lines"),
    pytest.param(
        lambda folder: (folder / sums.SIGNATURE).write_bytes((folder / sums.SIGNATURE).read_bytes()[:63]),
        "SHA256SUMS.sig has 63 bytes, and an Ed25519 signature 64",
        id="a truncated signature",
    ),
    pytest.param(
        lambda folder: (append(folder, CHART, b"x"), sum_again(folder)),
        "SHA256SUMS.sig has no signature by the key",
        id="a changed file with its new sum",
    ),
    pytest.param(
        lambda folder: append(folder, sums.NAME, f"{0:064x}  ../../.bashrc\n".encode()),
        "SHA256SUMS.sig has no signature by the key",
        id="a path in the sums",
    ),
]


@pytest.mark.parametrize(("change", "said"), ON_THE_WAY)
def test_a_signed_release_that_was_changed_is_refused(
    release: Release, tmp_path: Path, change: Change, said: str
) -> None:
    folder = release.copy(tmp_path / "files")
    change(folder)
    with pytest.raises(ReleaseError, match=said):
        verify_release(folder, public_key(release.public_key))


UNSIGNED: list[Any] = [
    pytest.param(lambda folder: sum_again(folder, **{"../a": f"{0:064x}"}), r"'\.\./a', no plain file", id="a path"),
    pytest.param(lambda folder: sum_again(folder, **{"/etc/a": f"{0:064x}"}), "'/etc/a', no plain", id="a whole path"),
    pytest.param(
        lambda folder: append(folder, sums.NAME, (folder / sums.NAME).read_bytes()), "may not name here", id="twice"
    ),
    pytest.param(
        lambda folder: append(folder, sums.NAME, b"x" * (2 << 20)), "is larger than 1048576 bytes", id="large sums"
    ),
    pytest.param(
        lambda folder: (append(folder, CHART, b"x"), sum_again(folder)),
        f"{PROVENANCE} is not about {CHART}",
        id="the provenance of another file",
    ),
    pytest.param(
        lambda folder: (append(folder, "more.sh", b"x"), sum_again(folder)),
        f"{PROVENANCE} is not about more.sh",
        id="a file without provenance",
    ),
    pytest.param(
        lambda folder: ((folder / PROVENANCE).unlink(), sum_again(folder)), f"has no {PROVENANCE}", id="no provenance"
    ),
    pytest.param(
        lambda folder: ((folder / PROVENANCE).write_text("[" * 100_000), sum_again(folder)),
        f"{PROVENANCE} is no JSON of a release",
        id="deep JSON",
    ),
    pytest.param(
        lambda folder: ((folder / PROVENANCE).write_text('{"payload": "", "payload": ""}'), sum_again(folder)),
        f"{PROVENANCE} is no JSON of a release",
        id="a key twice",
    ),
    pytest.param(
        lambda folder: (changed_envelope(folder, lambda found: found.update(payload="%%%")), sum_again(folder)),
        "is no DSSE envelope",
        id="no base64",
    ),
    pytest.param(
        lambda folder: (changed_envelope(folder, lambda found: found.update(payloadType="text")), sum_again(folder)),
        "has the payload type 'text'",
        id="another payload",
    ),
    pytest.param(
        lambda folder: (changed_statement(folder, lambda found: found.update(subject=7)), sum_again(folder)),
        "is no provenance of a release of Fairlead",
        id="no subjects",
    ),
    pytest.param(
        lambda folder: (
            changed_statement(folder, lambda found: found["subject"].append(found["subject"][0])),
            sum_again(folder),
        ),
        "names a file twice",
        id="a subject twice",
    ),
]


@pytest.mark.parametrize(("change", "said"), UNSIGNED)
def test_an_unsigned_release_is_checked_for_consistency(
    release: Release, tmp_path: Path, change: Change, said: str
) -> None:
    folder = release.copy(tmp_path / "files")
    (folder / sums.SIGNATURE).unlink()
    change(folder)
    with pytest.raises(ReleaseError, match=said):
        verify_release(folder)


def test_an_envelope_by_another_key_is_refused_though_the_sums_are_signed(release: Release, tmp_path: Path) -> None:
    folder, own = release.copy(tmp_path / "files"), signatures.private_key(release.key)
    other = signatures.private_key(keys(tmp_path)[0])
    payload = base64.b64decode(json.loads((folder / PROVENANCE).read_text())["payload"])
    (folder / PROVENANCE).write_text(json.dumps(signatures.envelope(payload, other)))
    sum_again(folder)
    (folder / sums.SIGNATURE).write_bytes(own.sign((folder / sums.NAME).read_bytes()))
    with pytest.raises(ReleaseError, match=f"{PROVENANCE} has no signature by the key"):
        verify_release(folder, own.public_key())


@pytest.mark.parametrize(
    ("bill", "said"),
    [
        pytest.param('{"bomFormat": "CycloneDX"}', "is no bill of materials by CycloneDX 1.6", id="not by the schema"),
        pytest.param(json.dumps({"components": [{}] * 2001}), "is no JSON of a release", id="an endless list"),
        pytest.param("\ud800", "is no JSON of a release", id="no text"),
    ],
)
def test_a_bill_that_is_none_is_refused_though_all_is_signed(
    release: Release, tmp_path: Path, bill: str, said: str
) -> None:
    folder, key = release.copy(tmp_path / "files"), signatures.private_key(release.key)
    (folder / BILL).write_bytes(bill.encode(errors="surrogatepass"))

    def about_it(statement: dict[str, Any]) -> None:
        (subject,) = [each for each in statement["subject"] if each["name"] == BILL]
        subject["digest"]["sha256"] = hashlib.sha256((folder / BILL).read_bytes()).hexdigest()

    changed_statement(folder, about_it)
    payload = base64.b64decode(json.loads((folder / PROVENANCE).read_text())["payload"])
    (folder / PROVENANCE).write_text(json.dumps(signatures.envelope(payload, key)))
    sum_again(folder)
    (folder / sums.SIGNATURE).write_bytes(key.sign((folder / sums.NAME).read_bytes()))
    with pytest.raises(ReleaseError, match=said):
        verify_release(folder, key.public_key())


def test_a_release_by_another_key_is_refused_in_one_sentence(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, other = keys(tmp_path)
    assert main(["verify", str(release.folder), "--public-key", str(other)]) == 1
    written = capsys.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)
    assert written.err.startswith("SHA256SUMS.sig has no signature by the key ")


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(ReleaseError, match="is no PEM of a public key"):
        public_key(tmp_path / "key")


def test_without_a_key_it_says_that_anybody_may_have_made_it(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(release.folder)]) == 0
    assert capsys.readouterr().out.startswith("signatures not verified: RELEASE_PUBLIC_KEY names no key")
