"""Builds the files of a release in a folder: packages, charts, overlays, images, their bills, provenance and sums.

    commit -> packages, images -> image-digests.yaml, image-values.yaml -> charts -> bills -> provenance -> SHA256SUMS

The digests of images are part of the chart, so that images come first. Everything but the images is equal, byte by
byte, each time that one commit is built with the same tools.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from releases import archives, images, packages, provenance, sbom, signatures, sums
from releases.errors import ReleaseError
from releases.folder import sha256
from releases.source import Source, clean_commit, exported

VALUES, DIGESTS = "image-values.yaml", "image-digests.yaml"
REGISTRY, TARGETS = "fairlead", ("control-plane", "one-machine", "runtime-cpu")


@dataclass(frozen=True, slots=True)
class Order:
    """What a release is to be.

    Attributes:
        registry: where its images are published.
        targets: the images that it names.
        digests: the text of a file with digests of images that are pushed already, which are then not built here.
        options: more options for the build of images.
    """

    registry: str = REGISTRY
    targets: tuple[str, ...] = TARGETS
    digests: str | None = None
    options: tuple[str, ...] = ()


def make_release(root: Path, out: Path, order: Order, key: Ed25519PrivateKey | None = None) -> list[str]:
    """Build a release of the commit that a work tree has; returns what it lacks, one sentence each.

    Args:
        out: a folder that is not there, or empty; it is there afterwards only if all went well.

    Raises:
        ReleaseError: the tree differs from its commit, the folder has files, or something cannot be built.
    """
    commit = clean_commit(root)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ReleaseError(f"{out} is there already: remove it, or name another folder by OUT=")
    out.parent.mkdir(parents=True, exist_ok=True)
    with exported(root, commit) as source, tempfile.TemporaryDirectory(dir=out.parent, prefix=".release-") as folder:
        made = Path(folder) / "release"
        made.mkdir()
        lacking = build(source, made, order, key)
        made.rename(out)
    return lacking


def build(source: Source, folder: Path, order: Order, key: Ed25519PrivateKey | None = None) -> list[str]:
    """Write all files of a release into an empty folder; returns what it lacks, one sentence each."""
    names = images.Names(order.registry, source.version, order.targets)
    wheel = packages.build(source, folder)
    digests, lacking = _images(source, names, folder, order)
    _write(folder, VALUES, images.values(names, digests).encode())
    digests_text = images.digests_file(digests)
    _write(folder, DIGESTS, digests_text.encode())
    for name in archives.CHARTS:
        _write(folder, *archives.chart(source, name, digests_text))
    _write(folder, *archives.overlays(source))
    _bills(source, folder, wheel, names, digests)
    finish(folder, _described(source, names), key)
    return lacking if key is not None else [*lacking, "not signed: RELEASE_KEY names no key"]


def finish(folder: Path, described: provenance.Build, key: Ed25519PrivateKey | None) -> None:
    """Write provenance and sums of the files that a folder has; with a key both are signed."""
    found = {path.name: sha256(folder, path.name) for path in folder.iterdir()}
    envelope = signatures.envelope(provenance.statement(described, found), key)
    _write(folder, provenance.NAME, (json.dumps(envelope, indent=1, sort_keys=True) + "\n").encode())
    content = sums.written({**found, provenance.NAME: sha256(folder, provenance.NAME)})
    _write(folder, sums.NAME, content)
    if key is not None:
        _write(folder, sums.SIGNATURE, key.sign(content))


def _images(source: Source, names: images.Names, folder: Path, order: Order) -> tuple[dict[str, str], list[str]]:
    """Return the digests of the images that are pushed or built here, and what is lacking."""
    if order.digests is not None:
        return images.read_digests(order.digests, names), []
    if (engine := images.engine()) is None:
        missing = "no images: neither docker with buildx nor podman answers, so that they are named by tag alone"
        return {}, [missing]
    return images.build_all(engine, source, names, folder, order.options), []


def _bills(source: Source, folder: Path, wheel: Path, names: images.Names, digests: Mapping[str, str]) -> None:
    sha = sha256(folder, wheel.name)
    text = sbom.of_wheel(wheel.name, source.version, sha, packages.requirements(wheel), source.made_s)
    _write(folder, f"{wheel.name}{sbom.SUFFIX}", text.encode())
    for target in names.targets:
        reference, lock = names.reference(target), (source.tree / _lock(target)).read_text()
        text = sbom.of_image(reference, digests.get(reference, ""), lock, source.made_s)
        _write(folder, f"{target}-{source.version}{sbom.SUFFIX}", text.encode())


def _described(source: Source, names: images.Names) -> provenance.Build:
    return provenance.Build(
        commit=source.commit,
        version=source.version,
        registry=names.registry,
        targets=names.targets,
        tools=packages.tools(),
        materials=_digests_of(source.tree, [_lock(target) for target in names.targets]),
    )


def _lock(target: str) -> str:
    return f"requirements/images/{target}.txt"


def _digests_of(tree: Path, paths: Sequence[str]) -> dict[str, str]:
    return {path: hashlib.sha256((tree / path).read_bytes()).hexdigest() for path in paths}


def _write(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
