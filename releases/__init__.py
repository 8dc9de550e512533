"""Releases: what installers fetch, proved, and built again to the byte.

`make release` and `make verify-release` call `python -m releases`; docs/how-to/release.md is the guide. This room
imports no other one.

    make_release      a commit -> wheel, source archive, charts, overlays, images, bills, provenance, sums
    verify_release    a folder from elsewhere -> what it was built of, or ReleaseError
    rebuild_release   a verified folder and a clone -> equal byte by byte, or ReleaseError

Modules, from below: errors; source, sums, provenance, sbom, signatures; folder, archives, packages; oci_archive;
images; build; verification; __main__.
"""

from releases.build import Order, make_release
from releases.errors import ReleaseError
from releases.verification import rebuild_release, verify_release

__all__ = ["Order", "ReleaseError", "make_release", "rebuild_release", "verify_release"]
