"""Serving runtime process on this machine: its command and its environment.

The platform's own environment holds its secret key, the database's password and tokens. A process that opens an
untrusted model gets only the variables listed here.
"""

import os
import sys
from collections.abc import Mapping

from integrations.clusters.base import permitted

# -I: neither PYTHON… variables, nor its working directory, nor the user's own packages add to its imports.
RUNTIME = (sys.executable, "-I", "-m", "serving_runtime")
IMAGE_ENVIRONMENT = {"ORT_DISABLE_TELEMETRY": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Variables that the runtime's images set (docker/Dockerfile says why)."""

INHERITED = frozenset(
    {
        "COVERAGE_PROCESS_CONFIG",
        "COVERAGE_PROCESS_START",
        "FAIRLEAD_HOME",  # by which `fairlead up` finds what an earlier one left
        "FAIRLEAD_LOG_FORMAT",
        "GLIBC_TUNABLES",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LOGNAME",
        "NO_PROXY",
        "PATH",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "no_proxy",
    }
)
INHERITED_FAMILIES = (
    "CUDA_",
    "GOMP_",
    "KMP_",
    "LC_",
    "MALLOC_",
    "MKL_",
    "NVIDIA_",
    "OMP_",
    "OPENBLAS_",
    "OPENVINO_",
    "ORT_",
    "OTEL_",
)
"""Libraries' own settings of threads, devices, memory, languages and traces, without secrets except in headers."""
_PROXIES = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "https_proxy", "http_proxy"})


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables inherited from the starter; proxies only where they name no user or password."""
    return {
        name: value
        for name, value in environ.items()
        if name in INHERITED
        or (name.startswith(INHERITED_FAMILIES) and not name.endswith("_HEADERS"))
        or (name in _PROXIES and "@" not in value)
    }


def environment(own: Mapping[str, str], *, is_code: bool) -> dict[str, str]:
    """Return the environment: the images' variables, overridden by inherited ones, overridden by the model's.

    Args:
        own: the model's, as recorded; refused ones are left out.
        is_code: its files are code, and the operator allows such models.
    """
    return {**IMAGE_ENVIRONMENT, **inherited(os.environ), **permitted(own, is_code=is_code)}
