"""Object storage: S3 and Google Cloud Storage through fsspec's `s3fs` and `gcsfs`, each an extra of its own.

The repository, the download of artifacts and the control plane's import open buckets by this module, and each raises
the errors of its own side. Credentials and endpoints come from the environment, as the stores' own tools have it.
"""

import importlib
import importlib.util
from enum import Enum
from typing import Any

_LIBRARIES = {"s3": ("s3fs", "S3FileSystem"), "gs": ("gcsfs", "GCSFileSystem")}
SCHEMES = tuple(_LIBRARIES)


class Failure(Enum):
    """Why a store did not give an object; the libraries raise the errors of the libraries that they use."""

    MISSING = "nothing is there"
    FORBIDDEN = "the credentials may not read it"
    NO_CREDENTIALS = "there are no credentials"
    UNAVAILABLE = "the store did not answer as it should"


def failure_of(error: Exception) -> Failure:
    """Return the kind of a library's error."""
    if isinstance(error, FileNotFoundError):
        return Failure.MISSING
    if isinstance(error, PermissionError):
        return Failure.FORBIDDEN
    return Failure.NO_CREDENTIALS if "Credentials" in type(error).__name__ else Failure.UNAVAILABLE


def missing_package(scheme: str) -> str:
    """Return the package that a scheme needs and that is not installed; empty where it is."""
    package = _LIBRARIES[scheme][0]
    return package if importlib.util.find_spec(package) is None else ""


def file_system(scheme: str, endpoint: str = "") -> Any:
    """Return fsspec's file system, without caches: `missing_package` is to be empty.

    Args:
        endpoint: address of an S3 server other than Amazon's; those seldom have a host name for each bucket.
    """
    package, kind = _LIBRARIES[scheme]
    options: dict[str, Any] = {"requests_timeout": 60}
    if scheme == "s3":
        config: dict[str, Any] = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}}
        options = {"config_kwargs": config}
        if endpoint:
            config["s3"] = {"addressing_style": "path"}
            options["client_kwargs"] = {"endpoint_url": endpoint}
    make = getattr(importlib.import_module(package), kind)
    return make(**options, skip_instance_cache=True, use_listings_cache=False)
