"""Environment variable policy: which variables of a service file reach its model. Standard library only, pure.

A variable can make an interpreter, the dynamic loader or a library run a file of the model's folder, so a model without
code gets only listed ones. Code (a model in Python where the cluster runs such, a transformer's container) may read any
variable, and gets all except those that start the process itself.

The spec refuses the others where a file is applied; drivers leave them out of older records.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value")

_THREADS = {
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_DYNAMIC",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "OPENBLAS_NUM_THREADS",
}
_DEVICES = {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "NVIDIA_TF32_OVERRIDE"}
_LOCALE = {"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "TZ"}
_LOGS = {"OPENVINO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL"}
OWN_PREFIX = "MODEL_"
"""Names with this prefix are for an operator's own backends; no library of the runtime reads any."""

PERMITTED = frozenset(_THREADS | _DEVICES | _LOCALE | _LOGS)
"""Variables that a model without code may set beside its own names."""

_STARTS_THE_PROCESS = frozenset(
    {
        "BASH_ENV",
        "CDPATH",
        "CUDA_INJECTION32_PATH",
        "CUDA_INJECTION64_PATH",
        "ENV",
        "GCONV_PATH",
        "GETCONF_DIR",
        "GLIBC_TUNABLES",
        "HOME",
        "IFS",
        "LOCALDOMAIN",
        "LOCPATH",
        "NLSPATH",
        "OMP_TOOL_LIBRARIES",
        "OPENSSL_CONF",
        "OPENSSL_CONF_INCLUDE",
        "OPENSSL_ENGINES",
        "OPENSSL_MODULES",
        "PATH",
        "RESOLV_HOST_CONF",
        "SHELLOPTS",
        "SSLKEYLOGFILE",
    }
)
_STARTS_WITH = (
    "BASH_FUNC_",
    "DYLD_",
    "FAIRLEAD_",  # the platform's own
    "LD_",
    "MALLOC_",
    "NVIDIA_",  # gives a container devices that the scheduler did not assign
    "NVTX_INJECTION",
    "PYTHON",
)


def why_refused(name: str, *, is_code: bool) -> str:
    """Return why a variable is refused and what to do, as a part of a sentence; empty where it is permitted."""
    if name in PERMITTED or name.startswith(OWN_PREFIX):
        return ""
    if name in _STARTS_THE_PROCESS or name.startswith(_STARTS_WITH):
        return (
            "such a variable could decide which code the process runs, or is the platform's own; leave it out, the "
            "operator sets those where the platform is started or in the runtime's image"
        )
    if is_code:
        return ""
    return (
        "a model that is no code reads none of that name; leave it out, or begin its name with "
        f"{OWN_PREFIX} if an own backend reads it"
    )


def refused(env: Iterable[str], *, is_code: bool) -> list[str]:
    """Return the refused ones of the names, in order."""
    return sorted(name for name in env if why_refused(name, is_code=is_code))


def permitted(env: Mapping[str, Value], *, is_code: bool) -> dict[str, Value]:
    """Return the permitted variables."""
    return {name: value for name, value in env.items() if not why_refused(name, is_code=is_code)}
