"""A small image as engines lay it out, before a release normalises it."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from releases.oci_archive import MANIFEST_TYPE


def write_layout(folder: Path, content: bytes = b"hello") -> str:
    """Write an image layout (OCI: image-spec) of one file in one layer; returns the digest of its manifest."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        about = tarfile.TarInfo("hello.txt")
        about.size = len(content)
        files.addfile(about, io.BytesIO(content))
    plain = layer.getvalue()
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]}
    configuration = {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": _blob(folder, "config.v1+json", json.dumps(configuration).encode()),
        "layers": [_blob(folder, "layer.v1.tar+gzip", gzip.compress(plain, mtime=0))],
    }
    named = _blob(folder, "manifest.v1+json", json.dumps(manifest).encode())
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    return str(named["digest"])


def pack(folder: Path, archive: Path) -> None:
    """Write the files of a layout as an engine does, with folders, the present times and modes."""
    with tarfile.open(archive, "w") as files:
        for each in ("blobs", "index.json", "oci-layout"):
            files.add(folder / each, each)


def _blob(folder: Path, kind: str, content: bytes) -> dict[str, Any]:
    found = hashlib.sha256(content).hexdigest()
    (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    (folder / "blobs" / "sha256" / found).write_bytes(content)
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{found}", "size": len(content)}
