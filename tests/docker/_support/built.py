"""The images under test, and their build."""

import os
import subprocess
from pathlib import Path

from tests.docker.engine import Engine, base
from tests.releases.record import version

ROOT = Path(__file__).parents[3]


# `make test-images IMAGES="... runtime-cuda"` asks for other ones, as `make images` does.
BUILT = tuple(os.environ.get("IMAGES", "control-plane one-machine runtime-cpu").split())


# `make test-images MORE=torch.txt` adds to them, under another tag.
MORE = os.environ.get("MORE", "")


TAG = f"{version()}-more" if MORE else version()


_BUILD_S = 3600


def build(docker: Engine, images: str, *, tag: str, more: str | Path = "") -> None:
    """Build images by the Makefile; raises AssertionError with what went wrong."""
    options = f"--network host --build-arg BASE={base(docker)}"
    told = [f"IMAGES={images}", f"IMAGE_TAG={tag}", f"MORE={more}", f"DOCKER_BUILD_OPTIONS={options}"]
    done = subprocess.run(
        ["make", "images", *told],
        cwd=ROOT,
        env=docker.environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # the older builder tells on stdout what failed
        text=True,
        timeout=_BUILD_S,
    )
    assert done.returncode == 0, done.stdout[-4000:]
