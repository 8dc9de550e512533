"""Environment variables of a service file, checked against what the cluster's processes receive. Pure.

Files are refused when they are applied, never when a stored one is read: a recorded service continues without the
variables that drivers leave out, and reports it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from common.errors import InvalidInput
from deployments.domain.service_file.companion import Companion, field_of
from deployments.domain.service_file.predictor import PREDICTOR_ENV, CustomPredictor
from deployments.domain.service_file.values import ServiceSpec
from deployments.domain.service_file.variables import secret_warnings
from integrations.clusters.base import CompanionKind, SecretKeyRef, refused, why_refused

ENV = "spec.predictor.model.env"
_CODE = {"python", "ensemble"}  # an ensemble may have steps in Python


def is_code(platform: str) -> bool:
    """Return whether models of a platform, or of a format, are code on a cluster that runs code; no if unknown."""
    return platform in _CODE


def check_env(spec: ServiceSpec, *, is_code: bool) -> None:
    """Raise InvalidInput, naming the field, where a process would not get a variable of the file.

    Args:
        is_code: the model is code, and its cluster runs code.
    """
    names = {**spec.env, **spec.secret_env}
    for field, env, of_code in _environments(names, spec.companions, spec.custom, is_code=is_code):
        for name in refused(env, is_code=of_code):
            raise InvalidInput(f"{field} sets {name}: {why_refused(name, is_code=of_code)}", field=field)


def plain_secrets(spec: ServiceSpec) -> tuple[str, ...]:
    """Return a warning for each variable that has a value in the file where its name is that of a secret."""
    of_companions = ((_env_of(kind), its.env) for kind, its in spec.companions.items())
    return tuple(secret_warnings([(env_field(spec.custom), spec.env), *of_companions]))


def named_secrets(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the references to secrets of an applied service file, without parsing the rest of it."""
    spec = document["spec"]
    predictor = spec["predictor"]
    served = [predictor["containers"][0] if predictor.get("containers") else predictor.get("model", {})]
    served += [spec[kind]["containers"][0] for kind in CompanionKind if spec.get(kind)]
    entries = (each for container in served for each in container.get("env") or ())
    return [each["valueFrom"]["secretKeyRef"] for each in entries if each.get("valueFrom")]


def env_field(custom: CustomPredictor | None) -> str:
    """Return the field with the variables of the predictor."""
    return ENV if custom is None else PREDICTOR_ENV


def secrets_of(spec: ServiceSpec) -> dict[str, Mapping[str, SecretKeyRef]]:
    """Return the variables whose values are in secrets, by the field of their environment."""
    of_companions = {_env_of(kind): its.secret_env for kind, its in spec.companions.items()}
    return {env_field(spec.custom): spec.secret_env, **of_companions}


def left_out(
    env: Iterable[str],
    companions: Mapping[CompanionKind, Companion],
    custom: CustomPredictor | None = None,
    *,
    is_code: bool,
) -> str:
    """Return the missing variables of processes, and the reason, as a part of a sentence; empty for none.

    Args:
        env: the names of the predictor's variables.
    """
    return "; ".join(
        f"{name} of {field}: {why_refused(name, is_code=of_code)}"
        for field, its, of_code in _environments(env, companions, custom, is_code=is_code)
        for name in refused(its, is_code=of_code)
    )


def _environments(
    env: Iterable[str],
    companions: Mapping[CompanionKind, Companion],
    custom: CustomPredictor | None,
    *,
    is_code: bool,
) -> list[tuple[str, Iterable[str], bool]]:
    """Return the names of each environment of a file with its field, and whether it is that of code."""
    # A companion's image can contain anything.
    found = [(_env_of(kind), [*its.env, *its.secret_env], True) for kind, its in companions.items()]
    return [(env_field(custom), env, is_code or custom is not None), *found]


def _env_of(kind: CompanionKind) -> str:
    return f"{field_of(kind)}.containers[0].env"
