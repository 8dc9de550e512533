"""Permissions for rollouts, whose addresses have no namespace, and for the models they use."""

import re
from collections.abc import Mapping
from typing import Any

from accounts.auth.access import Place, require
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.selectors import owning_team
from common.errors import NotFound
from deployments.domain.service_file import imported_model
from deployments.selectors import rollout_namespace
from registry.selectors import is_somebodys_model

_MODEL = re.compile(r"models:/([^/@]+)[/@]")


class OfRollout:
    """A view of one rollout: the caller needs the role in the team of its service."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the namespace of the rollout's service; raises NotFound."""
        return Place.namespace(rollout_namespace(rollout_id=self.kwargs["rollout_id"]))


def storage_uri_of(document: object) -> str:
    """Return the `storageUri` of an unchecked service file; empty where it has none."""
    for name in ("spec", "predictor", "model", "storageUri"):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""


def has_container(document: object) -> bool:
    """Return whether an unchecked service file has a custom predictor."""
    return _has(document, "containers")


def adds_version(document: object) -> bool:
    """Return whether an unchecked service file has a custom predictor or a model pool, which is a version, too."""
    return _has(document, "containers") or _has(document, "modelPool")


def _has(document: object, field: str) -> bool:
    for name in ("spec", "predictor", field):
        document = document.get(name) if isinstance(document, Mapping) else None
    return bool(document)


def require_model_use(token: ApiToken, uri: str) -> None:
    """Raise NotFound where `uri` names a model of another team that the caller may not see."""
    if match := _MODEL.match(uri):
        require(token, Scope.READ, Place.model(match[1]))


def check_model_of_team(uri: str, namespace: str, name: str) -> None:
    """Raise NotFound where a service of a namespace would use, or import into, a model of another team."""
    match = _MODEL.match(uri)
    model = match[1] if match else imported_model(namespace, name)
    if not match and not is_somebodys_model(name=model):
        return
    check_team_of_model(model, namespace)


def check_team_of_model(model: str, namespace: str) -> None:
    """Raise NotFound where a model, or one that is to be made, is not of the team that owns the namespace."""
    team = owning_team(kind=Owned.NAMESPACE, name=namespace)
    if owning_team(kind=Owned.MODEL, name=model) != team:
        raise NotFound(f"there is no model {model!r} that team {team} of namespace {namespace} may use")


def require_model_import(token: ApiToken, uri: str, namespace: str, name: str, *, adds_version: bool = False) -> None:
    """Raise NotFound or NotPermitted where an import, image or pool would add a version to another team's model."""
    model = imported_model(namespace, name)
    if ("://" in uri or adds_version) and is_somebodys_model(name=model):
        require(token, Scope.WRITE, Place.model(model))
