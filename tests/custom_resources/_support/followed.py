"""A cluster with a real API server whose objects are followed, one look at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from custom_resources.turns.controller import ObjectController
from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.api.resource_types import INFERENCE_SERVICE, MODEL_VERSION, ROLLOUT_POLICY, Kind
from tests.cluster._support.definitions import define
from tests.cluster.plane import ControlPlane
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import until

DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
_MERGE = {"Content-Type": "application/merge-patch+json"}


@dataclass
class Followed:
    """A cluster whose objects are followed, one look at a time."""

    platform: Platform
    admin: httpx.Client
    controller: ObjectController

    def apply(self, kind: Kind, name: str, spec: dict[str, Any], **annotations: str) -> None:
        named = {"name": name, "annotations": {f"fairlead.dev/{key}": value for key, value in annotations.items()}}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named, "spec": spec}
        answer = self.admin.patch(
            kind.path("default", name),
            params={"fieldManager": "git", "force": "true"},
            content=yaml.safe_dump(body),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        assert answer.is_success, answer.text

    def get(self, kind: Kind, name: str) -> dict[str, Any]:
        answer = self.admin.get(kind.path("default", name))
        return dict(answer.json()) if answer.is_success else {}

    def delete(self, kind: Kind, name: str) -> None:
        self.admin.delete(kind.path("default", name)).raise_for_status()

    def why(self, kind: Kind, name: str, of_type: str) -> str:
        """Return the message of a condition, once its object is as the controller left it."""
        found = self.get(kind, name)
        return next(
            (str(each["message"]) for each in found.get("status", {}).get("conditions", ()) if each["type"] == of_type),
            "",
        )

    def until(self, look: Callable[[], object], what: str) -> None:
        def looked() -> bool:
            self.controller.turn()
            return bool(look())

        until(looked, what)


@contextmanager
def following(
    plane: ControlPlane,
    settings: Settings,
    *,
    kinds: Sequence[Kind] = (INFERENCE_SERVICE, ROLLOUT_POLICY, MODEL_VERSION),
    file: Mapping[str, Any] | None = None,
) -> Iterator[Followed]:
    """Give a cluster called `here`, whose file has `file` too; removes the objects of `kinds` in the end."""
    settings.KUBECONFIG_FOLDER = plane.folder
    connection = {"kubeconfigPath": str(plane.kubeconfig), "context": "test"}
    artifacts = {**LEAST["artifacts"], "root": "/artifacts"}
    said = {"name": "here", "connection": connection, "artifacts": artifacts, "customResources": True}
    cluster_apply(document={**LEAST, **said, **(file or {})}, name=None, actor="test", now=timezone.now())
    platform = Platform()
    platform.version(1)
    cluster = Cluster.objects.get(name="here")
    with plane.client() as admin:
        *definitions, _ = yaml.safe_load_all(DEFINITIONS.read_text())
        for each in definitions:
            define(admin, each)
        it = Followed(platform, admin, ObjectController(lambda: {cluster.pk}))
        yield it
        it.controller.close()
        for kind in kinds:
            for each in admin.get(kind.path("default")).json()["items"]:
                path = kind.path("default", each["metadata"]["name"])
                admin.patch(path, json={"metadata": {"finalizers": None}}, headers=_MERGE)
                admin.delete(path)
