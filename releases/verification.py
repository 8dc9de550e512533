"""Verifies a release that came from elsewhere, and builds it again to compare.

    folder: plain files only -> SHA256SUMS by its signature -> each file by its sum, none more, none less
    -> provenance by its signature, and of these very files -> bills by CycloneDX's schema -> archives of images blob
    by blob -> (again) byte by byte

What is not signed is only checked for consistency: who made it, nothing says.
"""

import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from releases import images, oci_archive, packages, provenance, sbom, signatures, sums
from releases.build import DIGESTS, Order, build
from releases.errors import ReleaseError
from releases.folder import content, document, names, opened, sha256
from releases.source import exported, known_commit

_NOT_REBUILT = ".oci.tar"


def verify_release(folder: Path, key: Ed25519PublicKey | None = None) -> provenance.Build:
    """Return what a release was built of; raises ReleaseError with the first thing that is wrong.

    Args:
        key: whose signatures are needed; None checks sums and provenance alone.
    """
    files = names(folder)
    if sums.NAME not in files:
        raise ReleaseError(f"{folder} has no {sums.NAME}: it is no release")
    text = content(folder, sums.NAME)
    if key is not None:
        if sums.SIGNATURE not in files:
            raise ReleaseError(
                f"RELEASE_PUBLIC_KEY is given, and the release has no {sums.SIGNATURE}: it is not signed"
            )
        signatures.check(content(folder, sums.SIGNATURE), text, key, sums.SIGNATURE)
    expected = sums.parsed(text)
    _same_files(set(expected), set(files) - {sums.NAME, sums.SIGNATURE})
    for name, digest in expected.items():
        if sha256(folder, name) != digest:
            raise ReleaseError(f"{name} is not the file that {sums.NAME} names: fetch it again")
    described = _provenance(folder, expected, key)
    _bills(folder, expected)
    _archives(folder, expected, described)
    return described


def rebuild_release(folder: Path, root: Path, described: provenance.Build) -> int:
    """Build a verified release again and compare; returns how many files are equal, the images left out.

    Args:
        root: a clone that has the release's commit.

    Raises:
        ReleaseError: a file differs, or the commit is not there.
    """
    order = Order(described.registry, described.targets, content(folder, DIGESTS).decode(errors="replace"))
    released = {name for name in names(folder) if not name.endswith(_NOT_REBUILT)}
    released -= {sums.NAME, sums.SIGNATURE, provenance.NAME}
    with exported(root, known_commit(root, described.commit)) as source, tempfile.TemporaryDirectory() as made:
        build(source, Path(made), order)
        for name in sorted(released):
            if not (Path(made) / name).is_file() or sha256(Path(made), name) != sha256(folder, name):
                raise ReleaseError(f"{name} is not what the commit {described.commit} makes: {_why(described)}")
    return len(released)


def _same_files(listed: set[str], found: set[str]) -> None:
    if missing := sorted(listed - found):
        raise ReleaseError(f"{missing[0]} is in {sums.NAME} and not in the release: fetch it")
    if unlisted := sorted(found - listed):
        raise ReleaseError(f"{unlisted[0]} is in the release and not in {sums.NAME}: do not use it")


def _provenance(folder: Path, expected: dict[str, str], key: Ed25519PublicKey | None) -> provenance.Build:
    """Return what the provenance says, which has to be about these files."""
    if provenance.NAME not in expected:
        raise ReleaseError(f"the release has no {provenance.NAME}: nothing says what it was built of")
    envelope = document(content(folder, provenance.NAME), provenance.NAME)
    payload = signatures.opened(envelope, provenance.NAME, key)
    described, subjects = provenance.read(document(payload, provenance.NAME))
    others = {name: digest for name, digest in expected.items() if name != provenance.NAME}
    if wrong := sorted(subjects.items() ^ others.items()):
        raise ReleaseError(f"{provenance.NAME} is not about {wrong[0][0][:80]} of this release: do not use it")
    return described


def _bills(folder: Path, expected: dict[str, str]) -> None:
    """Raise ReleaseError where a wheel has no bill of its own, or a bill is not valid."""
    for name in expected:
        if name.endswith(".whl") and f"{name}{sbom.SUFFIX}" not in expected:
            raise ReleaseError(f"{name} has no bill of materials {name}{sbom.SUFFIX}: ask for a whole release")
    for name in (each for each in expected if each.endswith(sbom.SUFFIX)):
        text = content(folder, name)
        document(text, name)
        try:
            fault = sbom.fault_of(text.decode())
        except (UnicodeDecodeError, RecursionError):
            fault = "it cannot be read"
        if fault:
            raise ReleaseError(f"{name} is no bill of materials by CycloneDX 1.6: {fault}")


def _archives(folder: Path, expected: dict[str, str], described: provenance.Build) -> None:
    """Raise ReleaseError where an image's archive is damaged, or has another image than the release names."""
    named = images.Names(described.registry, described.version, described.targets)
    references = {images.archive_name(target, named.version): named.reference(target) for target in named.targets}
    digests = images.read_digests(content(folder, DIGESTS).decode(errors="replace"), named)
    for name in (each for each in expected if each.endswith(_NOT_REBUILT)):
        reference = references.get(name)
        if reference is None:
            raise ReleaseError(f"{name} is of no image that {provenance.NAME} names: do not use it")
        with opened(folder, name) as file:
            digest = oci_archive.verified(file, name, reference)
        if digest != digests.get(reference):
            raise ReleaseError(f"{name} has the image {digest[:19]}, which {DIGESTS} does not name: do not use it")


def _why(described: provenance.Build) -> str:
    """Return how this machine differs from the one that made the release, where that may be the cause."""
    own, theirs = packages.tools(), described.tools
    differing = [f"{name} {theirs[name]} (here {own.get(name)})" for name in theirs if own.get(name) != theirs[name]]
    if differing:
        return f"it was made by {', '.join(differing)}; verify with the same"
    return "the tools are the same, so do not use it"
