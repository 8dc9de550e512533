"""The serving runtime as a process of this machine: what starts it, and with which environment.

Models run there, so the control plane's settings stay out of it: the secret key and the database's password above all.
"""

import os
import sys
from collections.abc import Mapping

RUNTIME = (sys.executable, "-m", "serving_runtime")
IMAGE_ENVIRONMENT = {"ORT_DISABLE_TELEMETRY": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""What the runtime's images set (docker/Dockerfile says why)."""

_OF_THE_CONTROL_PLANE = ("FAIRLEAD_", "POSTGRES_", "PGPASS", "DJANGO_", "CELERY_")
_KEPT = ("FAIRLEAD_HOME",)


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the images' environment, over it this process's, and over both what the model has of its own.

    What the control plane alone needs is left out, whoever starts the process.
    """
    inherited = {
        name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith(_OF_THE_CONTROL_PLANE)
    }
    return {**IMAGE_ENVIRONMENT, **inherited, **own}
