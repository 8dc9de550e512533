"""Where a caller needs a role for rollouts, which have no namespace in their address, and for the models they use."""

import re
from collections.abc import Mapping
from typing import Any

from accounts.access import Place, require
from accounts.models import ApiToken
from accounts.scopes import Scope
from deployments.selectors import rollout_namespace

_MODEL = re.compile(r"models:/([^/@]+)[/@]")


class OfRollout:
    """A view of one rollout: the caller's role in the team of its service counts."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the namespace of the rollout's service; raises NotFound."""
        return Place.namespace(rollout_namespace(rollout_id=self.kwargs["rollout_id"]))


def storage_uri_of(document: object) -> str:
    """Return the `storageUri` of a service file that nobody checked yet; empty where it has none."""
    for name in ("spec", "predictor", "model", "storageUri"):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""


def require_model_use(token: ApiToken, uri: str) -> None:
    """Raise NotFound where `uri` names a model of another team that the caller may not see."""
    if match := _MODEL.match(uri):
        require(token, Scope.READ, Place.model(match[1]))
