"""Digests of a release's images, as a registry's client reports them."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SCRIPT = Path(__file__).parents[2] / "docker" / "digests.py"
DIGEST, OTHER = f"sha256:{1:064}", f"sha256:{2:064}"
REFERENCE = "fairlead/control-plane:0.2.0"


def digests(folder: Path, *references: str, client: str) -> "subprocess.CompletedProcess[str]":
    """Run the script with a client `docker` that is this shell script."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{client}\n")
    program.chmod(0o755)
    command = [sys.executable, str(SCRIPT), *references]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)


def test_each_image_has_the_digest_that_its_registry_names(tmp_path: Path) -> None:
    client = f'[ "$4" = "{REFERENCE}" ] && echo {DIGEST} || echo {OTHER}'
    done = digests(tmp_path, "fairlead/serving-runtime:0.2.0", REFERENCE, client=client)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == {
        REFERENCE: DIGEST,
        "fairlead/serving-runtime:0.2.0": OTHER,
    }


@pytest.mark.parametrize(
    ("reference", "client", "said"),
    [
        (
            REFERENCE,
            "echo manifest unknown >&2; exit 1",
            "names no digest of fairlead/control-plane:0.2.0: manifest unkno",
        ),
        (
            REFERENCE,
            "echo sha256:12",
            "names no digest of fairlead/control-plane:0.2.0: sha256:12; push the image first",
        ),
        ("fairlead/control-plane", f"echo {DIGEST}", "is no image with a tag"),
        ("--help:1", f"echo {DIGEST}", "is no image with a tag"),
    ],
)
def test_nothing_is_written_without_a_digest(tmp_path: Path, reference: str, client: str, said: str) -> None:
    done = digests(tmp_path, reference, client=client)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
