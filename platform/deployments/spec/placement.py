"""`spec.placement` of a service file: what the cluster cannot know of where replicas should run. Pure."""

from typing import Any

from deployments.document import Document
from deployments.spec.values import PlacementWish
from integrations.clusters.base import Arrangement

PLACEMENT = "spec.placement"
"""Where a service file has it."""


def parse_placement(spec: Document) -> PlacementWish:
    """Return what `spec.placement` says; raises InvalidInput."""
    document = spec.optional("placement")
    if document is None:
        return PlacementWish()
    says = document.raw("replicas", None) is not None
    wish = PlacementWish(document.choice("replicas", Arrangement, Arrangement.PACK) if says else None)
    document.refuse_unknown()
    return wish


def placement_json(wish: PlacementWish) -> dict[str, Any]:
    """Return it as a file has it; empty where it says nothing."""
    return {} if wish.replicas is None else {"replicas": wish.replicas.value}


def stored_placement(stored: dict[str, Any]) -> PlacementWish:
    """Return what `placement_json` wrote."""
    return PlacementWish(Arrangement(stored["replicas"]) if "replicas" in stored else None)
