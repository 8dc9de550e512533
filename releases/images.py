"""The container images of a release: their published names, their digests, and the files that name them.

An engine that answers builds them as OCI archives, whose digest is the one that a registry has after a push that
preserves it. Without an engine a release names images without holding them; digests of images that are already pushed
come from `docker/digests.py`.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from releases import oci_archive
from releases.errors import ReleaseError
from releases.source import Source

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REGISTRY = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")


@dataclass(frozen=True, slots=True)
class Image:
    """An image of `docker/Dockerfile`.

    Attributes:
        target: its stage there, and the name of its lock in `requirements/images/`.
        name: the last part of its repository.
        suffix: what its tag has besides the version.
        value: where the chart's values name it; empty where the chart has no use for it.
    """

    target: str
    name: str
    suffix: str = ""
    value: tuple[str, ...] = ()


IMAGES = {
    image.target: image
    for image in (
        Image("control-plane", "control-plane", value=("image",)),
        Image("one-machine", "one-machine"),
        Image("runtime-cpu", "serving-runtime", value=("cluster", "runtimeImage")),
        Image("runtime-cuda", "serving-runtime", "-cuda", value=("cluster", "gpuRuntimeImage")),
    )
}


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a release's images are published by.

    Attributes:
        registry: what precedes the image's name, such as `registry.example.com/fairlead`.
        version: of the release.
        targets: keys of IMAGES.
    """

    registry: str
    version: str
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _REGISTRY.fullmatch(self.registry):
            raise ReleaseError(f"REGISTRY is {self.registry[:80]!r}, no name such as registry.example.com/fairlead")
        if unknown := [target for target in self.targets if target not in IMAGES]:
            raise ReleaseError(f"IMAGES has {unknown[0][:40]!r}; there are {', '.join(IMAGES)}")

    def repository(self, target: str) -> str:
        """Return the name without a tag."""
        return f"{self.registry}/{IMAGES[target].name}"

    def tag(self, target: str) -> str:
        return f"{self.version}{IMAGES[target].suffix}"

    def reference(self, target: str) -> str:
        """Return the name with its tag."""
        return f"{self.repository(target)}:{self.tag(target)}"


def values(names: Names, digests: Mapping[str, str]) -> str:
    """Return values of the chart with the published names: `image-values.yaml`.

    Args:
        digests: by reference; an image without one is named by its tag alone.
    """
    made: dict[str, Any] = {}
    for target in names.targets:
        place, value = made, IMAGES[target].value
        for word in value[:-1]:
            place = place.setdefault(word, {})
        if value:
            named = {"repository": names.repository(target), "tag": names.tag(target)}
            digest = digests.get(names.reference(target))
            place[value[-1]] = {**named, "digest": digest} if digest else named
    head = f"# Images of Fairlead {names.version}: helm upgrade --install … --values image-values.yaml\n"
    return head + yaml.safe_dump(made, sort_keys=False)


def digests_file(digests: Mapping[str, str]) -> str:
    """Return the digests as the chart reads them: `image-digests.yaml`, and `files/digests.yaml` of the chart."""
    lines = "".join(f"{reference}: {digests[reference]}\n" for reference in sorted(digests)) or "{}\n"
    return f"# Digests of the images of this release, as `repository:tag: sha256:…`\n{lines}"


def read_digests(text: str, names: Names) -> dict[str, str]:
    """Return the digests of a file that `docker/digests.py` or a release wrote; raises ReleaseError for any other."""
    known = {names.reference(target) for target in names.targets}
    found: dict[str, str] = {}
    for line in text.splitlines():
        reference, _, digest = line.rpartition(": ")
        if not line or line == "{}" or line.startswith("#"):
            continue
        if reference not in known:
            own = ", ".join(sorted(known))
            raise ReleaseError(f"a digest is of {reference[:100]!r}, and the images of this release are {own}")
        if not _DIGEST.fullmatch(digest) or reference in found:
            raise ReleaseError(f"{reference} has the digest {digest[:80]!r}: it needs one, sha256: and 64 hex digits")
        found[reference] = digest
    return found


@dataclass(frozen=True, slots=True)
class Engine:
    """What builds images: `docker` with buildx, or `podman`."""

    program: str

    def build(self, source: Source, names: Names, target: str, file: Path, options: Sequence[str]) -> None:
        """Write an image as an OCI archive; raises ReleaseError with the end of what the engine said.

        Args:
            options: more options of the build, such as `--build-arg BASE=…`.
        """
        reference, dockerfile = names.reference(target), str(source.tree / "docker" / "Dockerfile")
        epoch = f"SOURCE_DATE_EPOCH={source.made_s}"
        common = ["--file", dockerfile, "--target", target, "--tag", reference, "--build-arg", epoch, *options]
        if self.program == "docker":
            output = f"type=oci,dest={file},rewrite-timestamp=true"
            build = ["docker", "buildx", "build", "--provenance=false", "--output", output]
            _run([*build, *common, "."], source)
        else:
            _run(["podman", "build", "--format", "oci", "--timestamp", str(source.made_s), *common, "."], source)
            _run(["podman", "save", "--format", "oci-archive", "--output", str(file), reference], source)


def engine() -> Engine | None:
    """Return the engine that answers, if one does."""
    for program, asked in (("docker", (["buildx", "version"], ["info"])), ("podman", (["info"],))):
        if all(_answers([program, *arguments]) for arguments in asked):
            return Engine(program)
    return None


def archive_name(target: str, version: str) -> str:
    return f"{target}-{version}.oci.tar"


def build_all(found: Engine, source: Source, names: Names, folder: Path, options: Sequence[str]) -> dict[str, str]:
    """Write an archive of each image into a folder; returns the digests by reference."""
    return {names.reference(target): digest for target, digest in _built(found, source, names, folder, options)}


def _built(
    found: Engine, source: Source, names: Names, folder: Path, options: Sequence[str]
) -> Iterable[tuple[str, str]]:
    for target in names.targets:
        file = folder / archive_name(target, names.version)
        found.build(source, names, target, file, options)
        yield target, oci_archive.normalised(file, names.reference(target), source.made_s)


def _answers(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command: Sequence[str], source: Source) -> None:
    done = subprocess.run(command, cwd=source.tree, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # Podman ends with the whole command that failed; what that command said precedes it.
        raise ReleaseError(f"{' '.join(command[:3])} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
