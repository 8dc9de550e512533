"""Flags of the serving runtime that say the same wherever it runs. Pure."""

from collections.abc import Sequence

from integrations.clusters.base import DesiredRevision
from serving_runtime.shared.egress import Network


def python_flags(*, allowed: bool) -> list[str]:
    """Return the flag that lets a runtime run models whose files are code, where the operator has said so."""
    return ["--allow-python-models=true"] if allowed else []


def logger_flags(namespace: str, revision: DesiredRevision, allowed: Sequence[Network]) -> list[str]:
    """Return what a replica is started with so that it posts every request to the revision's logger; empty without one.

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
