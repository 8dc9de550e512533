"""Environment variables of a service file, checked against what the cluster's processes receive. Pure.

Files are refused when they are applied, never when a stored one is read: a recorded service continues without the
variables that drivers leave out, and reports it.
"""

from collections.abc import Mapping

from common.errors import InvalidInput
from deployments.domain.service_file.transformer import Transformer
from deployments.domain.service_file.values import ServiceSpec
from integrations.clusters.base import refused, why_refused

ENV = "spec.predictor.model.env"
TRANSFORMER_ENV = "spec.transformer.containers[0].env"
_CODE = {"python", "ensemble"}  # an ensemble may have steps in Python


def is_code(platform: str) -> bool:
    """Return whether models of a platform, or of a format, are code on a cluster that runs code; no if unknown."""
    return platform in _CODE


def check_env(spec: ServiceSpec, *, is_code: bool) -> None:
    """Raise InvalidInput, naming the field, where a process would not get a variable of the file.

    Args:
        is_code: the model is code, and its cluster runs code.
    """
    for field, env, of_code in _environments(spec.env, spec.transformer, is_code=is_code):
        for name in refused(env, is_code=of_code):
            raise InvalidInput(f"{field} sets {name}: {why_refused(name, is_code=of_code)}", field=field)


def left_out(env: Mapping[str, str], transformer: Transformer | None, *, is_code: bool) -> str:
    """Return the missing variables of processes, and the reason, as a part of a sentence; empty for none."""
    return "; ".join(
        f"{name} of {field}: {why_refused(name, is_code=of_code)}"
        for field, its, of_code in _environments(env, transformer, is_code=is_code)
        for name in refused(its, is_code=of_code)
    )


def _environments(
    env: Mapping[str, str], transformer: Transformer | None, *, is_code: bool
) -> list[tuple[str, Mapping[str, str], bool]]:
    """Return each environment of a file with its field, and whether it is that of code."""
    found: list[tuple[str, Mapping[str, str], bool]] = [(ENV, env, is_code)]
    if transformer is not None:
        found.append((TRANSFORMER_ENV, transformer.env, True))  # its image can contain anything
    return found
