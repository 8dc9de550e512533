"""Names of models in a pool: <namespace>.<service>@<version>. Pure.

Namespaces and services are DNS labels (RFC 1123), which have no dots: one text has one meaning.
"""

import re
from typing import NamedTuple, TypeGuard

_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_MODEL = re.compile(rf"({_LABEL})\.({_LABEL})")
_SERVICE = re.compile(rf"({_LABEL})/({_LABEL})")
_VERSION = re.compile(r"[1-9][0-9]{0,17}")
_MOUNT = re.compile(rf"/serving/({_LABEL})/({_LABEL})(/.*|)".encode(), re.DOTALL)
_SHOWN = 80

SERVICE_METADATA = b"fairlead-service"
"""Header and gRPC metadata `<namespace>/<service>`; the gateway sets it."""

VERSION_HEADER = b"fairlead-model-version"
"""Header and gRPC metadata with the version that a request is for; the gateway sets it during a rollout."""


class ServiceName(NamedTuple):
    """A service, whose only model has its name."""

    namespace: str
    service: str

    @property
    def model(self) -> str:
        """Return the name of its model in the catalog."""
        return f"{self.namespace}.{self.service}"


class VersionKey(NamedTuple):
    """One version of a model, which the runtime loads by itself."""

    model: str
    version: int

    def __str__(self) -> str:
        return f"{self.model}@{self.version}"

    @property
    def service(self) -> str:
        """Return the name that answers have."""
        return self.model.partition(".")[2]


def is_model(name: object) -> TypeGuard[str]:
    """Return whether a value is <namespace>.<service>."""
    return isinstance(name, str) and _MODEL.fullmatch(name) is not None


def version_of(text: str) -> int | None:
    """Return a version number, None for a text that is none."""
    return int(text) if _VERSION.fullmatch(text) else None


def key_of(text: str) -> VersionKey | None:
    """Return the model version in <namespace>.<service>@<version>, None for any other text."""
    model, _, version = text.partition("@")
    number = version_of(version)
    return VersionKey(model, number) if number is not None and is_model(model) else None


def mounted(target: bytes) -> tuple[ServiceName, bytes] | None:
    """Return the service of a path /serving/<namespace>/<service>/… and the rest of it; None for other paths."""
    found = _MOUNT.fullmatch(target)
    return (ServiceName(found[1].decode(), found[2].decode()), found[3]) if found is not None else None


def service_in(value: bytes) -> ServiceName | None:
    """Return the service in metadata, None for a value that is none."""
    found = _SERVICE.fullmatch(value.decode("latin-1"))
    return ServiceName(found[1], found[2]) if found is not None else None


def shown(text: str) -> str:
    """Return a client's text for an error message."""
    return repr(text[:_SHOWN])
