"""Serving runtime flags and variables that are the same wherever it runs. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from integrations.clusters.base import DesiredRevision
from serving_runtime.shared import json_log, otlp
from serving_runtime.shared.egress import Network

CLOSED = {"FAIRLEAD_ALLOW_CONTROL_CALLS": "false"}
"""Closes the calls that change a replica without its revision; the control plane makes none of them.
A variable, not a flag: runtimes of earlier releases ignore it."""
NO_CODE_FILES = {"FAIRLEAD_ALLOW_CODE_FILES": "false"}
"""Keeps files that an interpreter or the loader could run out of a model's folder; a variable for the same reason."""
_PYTHON_MODELS = "--allow-python-models"
_TRUE = ("true", "1", "on")  # as the runtime reads it


def log_variables(*, is_json: bool) -> dict[str, str]:
    """Return the variable by which a runtime logs JSON; empty where it logs text. Earlier releases ignore it."""
    return {json_log.VARIABLE: json_log.JSON} if is_json else {}


def trace_variables(endpoint: str, namespace: str, revision: DesiredRevision) -> dict[str, str]:
    """Return the variables by which a replica sends spans, with its service and revision; empty without a collector."""
    if not endpoint:
        return {}
    about = {
        "service.namespace": namespace,
        "fairlead.service": f"{namespace}/{revision.model_name}",
        "fairlead.revision": revision.name,
    }
    attributes = ",".join(f"{name}={value}" for name, value in about.items())
    return {otlp.VARIABLE: endpoint, "OTEL_RESOURCE_ATTRIBUTES": attributes}


def python_flags(*, allowed: bool) -> list[str]:
    """Return the flag that lets a runtime run models whose files are code, where the operator allows it."""
    return [f"{_PYTHON_MODELS}=true"] if allowed else []


def allows_python(command: Sequence[str]) -> bool:
    """Return whether a runtime started by this command runs models whose files are code."""
    return value_of(command, _PYTHON_MODELS).lower() in _TRUE


def value_of(command: Sequence[str], flag: str) -> str:
    """Return the last value that a command line gives a flag; empty where it gives none."""
    return next(iter(values_of(command, flag)[::-1]), "")


def values_of(command: Sequence[str], flag: str) -> list[str]:
    """Return all values that a command line gives a flag, in its order."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return [value for name, value in pairwise(words) if name == flag]


def logger_flags(namespace: str, revision: DesiredRevision, allowed: Sequence[Network]) -> list[str]:
    """Return the flags by which a replica posts every request to the revision's logger; empty without one.

    The attributes are those of KServe's payload logger, and the revision.

    Args:
        allowed: networks that loggers may be in although they are not public.
    """
    logger = revision.logger
    if logger is None:
        return []
    attributes = {
        "inferenceservicename": revision.model_name,
        "namespace": namespace,
        "component": "predictor",
        "revision": revision.name,
    }
    return [
        f"--payload-logger={logger.url}",
        f"--payload-logger-mode={logger.mode}",
        f"--payload-logger-allowed-networks={','.join(str(network) for network in allowed)}",
        *(f"--payload-logger-attribute={name}={value}" for name, value in attributes.items()),
    ]
