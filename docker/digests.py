"""Writes the digests of a release's images, as the chart reads them (`charts/fairlead/files/digests.yaml`).

Usage: digests.py REPOSITORY:TAG... > charts/fairlead/files/digests.yaml

Run it once the images are pushed, before the chart is packaged: the registry names the digests.
"""

import re
import subprocess
import sys
from collections.abc import Sequence

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9._:/-]*:[A-Za-z0-9_][A-Za-z0-9._-]*")


def main(references: Sequence[str]) -> int:
    """Print the file; raises SystemExit where an image has no tag or the registry names no digest of it."""
    if not references:
        raise SystemExit("digests.py takes the images of the release, such as fairlead/control-plane:0.2.0")
    lines = [f"{reference}: {digest_of(reference)}\n" for reference in sorted(set(references))]
    sys.stdout.write("# Digests of the images of this release: docker/digests.py\n" + "".join(lines))
    return 0


def digest_of(reference: str) -> str:
    """Return the digest of a pushed image, of its index where it has several platforms."""
    if not _REFERENCE.fullmatch(reference):
        raise SystemExit(f"{reference!r} is no image with a tag, such as fairlead/control-plane:0.2.0")
    command = ["docker", "buildx", "imagetools", "inspect", reference, "--format", "{{.Manifest.Digest}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    digest = done.stdout.strip()
    if done.returncode != 0 or not _DIGEST.fullmatch(digest):
        said = (done.stderr or digest).strip()[-300:]
        raise SystemExit(f"the registry names no digest of {reference}: {said}; push the image first")
    return digest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
