"""The serving runtime as a process of this machine: what starts it, and with which environment."""

import os
import sys
from collections.abc import Mapping

RUNTIME = (sys.executable, "-m", "serving_runtime")
IMAGE_ENVIRONMENT = {"ORT_DISABLE_TELEMETRY": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""What the runtime's images set (docker/Dockerfile says why)."""


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the images' environment, over it this process's, and over both what the model has of its own."""
    return {**IMAGE_ENVIRONMENT, **os.environ, **own}
