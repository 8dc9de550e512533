"""The parts of a release: names and digests of images, engines, bills of materials, sums."""

import json
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from releases import ReleaseError, images, oci_archive, sbom, sums
from releases.source import Source
from tests.releases._support.layout import pack, write_layout

NAMES = images.Names("registry.example.com:5000/a/b", "1.2.3", ("control-plane", "runtime-cpu", "runtime-cuda"))
REFERENCE, DIGEST = "registry.example.com:5000/a/b/control-plane:1.2.3", f"sha256:{7:064x}"


def test_values_have_the_published_names_and_the_digests_that_are_known() -> None:
    repository = "registry.example.com:5000/a/b/serving-runtime"
    assert yaml.safe_load(images.values(NAMES, {REFERENCE: DIGEST})) == {
        "image": {"repository": REFERENCE.removesuffix(":1.2.3"), "tag": "1.2.3", "digest": DIGEST},
        "cluster": {
            "runtimeImage": {"repository": repository, "tag": "1.2.3"},
            "gpuRuntimeImage": {"repository": repository, "tag": "1.2.3-cuda"},
        },
    }


@pytest.mark.parametrize("digests", [{}, {REFERENCE: DIGEST}])
def test_a_file_of_digests_is_read_as_it_was_written(digests: dict[str, str]) -> None:
    text = images.digests_file(digests)
    assert images.read_digests(text, NAMES) == digests
    assert (yaml.safe_load(text) or {}) == digests


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            f"fairlead/control-plane:1.2.3: {DIGEST}\n", "a digest is of 'fairlead/con", id="another registry"
        ),
        pytest.param(f"{REFERENCE}: sha256:12\n", "has the digest 'sha256:12'", id="half a digest"),
        pytest.param(f"{REFERENCE}: {DIGEST}\n" * 2, "it needs one", id="two digests"),
        pytest.param("&a [*a, *a]\n", "a digest is of ''", id="other YAML"),
    ],
)
def test_another_file_of_digests_is_refused(text: str, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        images.read_digests(text, NAMES)


# What an engine's client does that a release needs: it answers, and writes an archive where it was asked to.
ENGINE = """#!/bin/sh
echo "$0 $*" >> "$CALLS"
for word; do
    case $word in type=oci,dest=*) out=${word#type=oci,dest=} out=${out%%,*} ;; esac
    [ "$before" = --output ] && [ "$(basename "$0")" = podman ] && out=$word
    before=$word
done
[ -z "$out" ] || tar --create --file "$out" --directory "$LAYOUT" blobs index.json oci-layout
"""


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_the_engine_that_answers_builds_each_image_as_an_archive(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / program).write_text(ENGINE)
    (tools / program).chmod(0o755)
    for tool in ("tar", "basename", "sh"):
        (tools / tool).symlink_to(f"/bin/{tool}" if tool != "basename" else "/usr/bin/basename")
    layout = tmp_path / "layout"
    layout.mkdir()
    digest = write_layout(layout)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("LAYOUT", str(layout))
    found = images.engine()
    assert found == images.Engine(program)
    source = Source("0" * 40, 1234, "1.2.3", tmp_path)
    made = images.build_all(found, source, NAMES, tmp_path, ["--build-arg", "BASE=own"])
    assert made == {NAMES.reference(target): digest for target in NAMES.targets}
    assert len(list(tmp_path.glob("*-1.2.3.oci.tar"))) == 3
    built = [line for line in (tmp_path / "calls").read_text().splitlines() if " --target " in line]
    assert len(built) == 3
    given = "--build-arg SOURCE_DATE_EPOCH=1234 --build-arg BASE=own"
    assert all(given in line for line in built)


def test_without_an_engine_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.engine() is None


def test_an_engine_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "podman").write_text("#!/bin/sh\necho no space left >&2\nexit 125\n")
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="podman build --format failed: no space left"):
        images.Engine("podman").build(Source("0" * 40, 0, "1.2.3", tmp_path), NAMES, "runtime-cpu", tmp_path / "a", [])


def normalised(folder: Path, name: str = "a.oci.tar") -> tuple[Path, str]:
    """Return an archive of one image, and its digest."""
    layout = folder / f"layout-{name}"
    layout.mkdir()
    digest = write_layout(layout)
    pack(layout, folder / name)
    assert oci_archive.normalised(folder / name, REFERENCE, 1234) == digest
    return folder / name, digest


def test_archives_of_one_image_are_equal_and_engines_of_all_kinds_find_its_name(tmp_path: Path) -> None:
    (one, digest), (other, _) = normalised(tmp_path), normalised(tmp_path, "b.oci.tar")
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as files:
        assert {(each.mtime, each.mode, each.uid, each.uname) for each in files} == {(1234, 0o644, 0, "")}
        index, dockers = (json.load(files.extractfile(name) or BytesIO()) for name in ("index.json", "manifest.json"))
        blobs = [name for name in files.getnames() if name.startswith("blobs/")]
    (named,), (image,) = index["manifests"], dockers
    assert named["digest"] == digest
    assert named["annotations"]["org.opencontainers.image.ref.name"] == REFERENCE
    assert image["RepoTags"] == [REFERENCE]
    assert {image["Config"], *image["Layers"]} < set(blobs)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda layout: (layout / "index.json").write_text('{"manifests": []}'), id="no image"),
        pytest.param(lambda layout: (layout / "index.json").write_text("[" * 100_000), id="deep JSON"),
        pytest.param(lambda layout: (layout / "index.json").write_text('{"manifests": [{}]}'), id="no digest"),
        pytest.param(lambda layout: [each.unlink() for each in layout.glob("blobs/*/*")], id="no blobs"),
    ],
)
def test_what_is_no_archive_of_an_image_is_refused(tmp_path: Path, change: Callable[[Path], object]) -> None:
    write_layout(tmp_path)
    change(tmp_path)
    pack(tmp_path, tmp_path / "a.oci.tar")
    with pytest.raises(ReleaseError, match=r"a\.oci\.tar is no (OCI archive of one image|JSON)"):
        oci_archive.normalised(tmp_path / "a.oci.tar", REFERENCE, 0)


def test_the_bill_of_an_image_has_the_packages_of_its_lock() -> None:
    lock = "Some_Package==1.0 \\\n    --hash=sha256:00\n    # via other\nother==2.0.1 ; python_version > '3' \\\n"
    found = json.loads(sbom.of_image(REFERENCE, DIGEST, lock, 0))
    assert [each["purl"] for each in found["components"]] == ["pkg:pypi/other@2.0.1", "pkg:pypi/some-package@1.0"]
    assert found["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": f"{7:064x}"}]
    assert found["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"


def test_the_bill_of_a_wheel_has_what_it_requires() -> None:
    found = json.loads(sbom.of_wheel("a.whl", "1.2.3", "0" * 64, ["PyYAML>=6"], 0))
    (component,) = found["components"]
    assert component["purl"] == "pkg:pypi/pyyaml"
    assert component["properties"] == [{"name": "fairlead:requires", "value": "PyYAML>=6"}]


def test_sums_are_read_as_they_were_written() -> None:
    found = {"b.tgz": f"{1:064x}", "a.whl": f"{2:064x}"}
    assert sums.written(found) == f"{2:064x}  a.whl\n{1:064x}  b.tgz\n".encode()
    assert sums.parsed(sums.written(found)) == found


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"0  a\n", f"{1:064x}  a".encode(), f"{1:064x} *a\n".encode(), f"{171:064X}  a\n".encode(), b"\xff\n"],
)
def test_other_sums_are_refused(content: bytes) -> None:
    with pytest.raises(ReleaseError, match="fetch the release again"):
        sums.parsed(content)
