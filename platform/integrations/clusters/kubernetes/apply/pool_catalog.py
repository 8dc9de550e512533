"""Catalog of a pool on the cluster: ConfigMaps, of which each service writes the key of its model and no other.

The first service of a shard creates it. Shards have none of the labels that watches select by: at 100,000 models they
are tens of megabytes, which only the pool's replicas read.
"""

from common.errors import NotFound
from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP
from integrations.clusters.kubernetes.manifests.names import CATALOG
from integrations.clusters.kubernetes.manifests.pools import document, shard
from integrations.clusters.kubernetes.options import Options


def put(api: Api, desired: Desired, at: tuple[str, str], options: Options) -> None:
    """Make the catalog say which versions of a service its pool answers for; without any it says nothing.

    Args:
        at: namespace and name of the pool; the service may be in another namespace.

    Raises:
        InvalidInput: an artifact that no pod can reach, or a shard that would be larger than a ConfigMap may be.
        Conflict: others created the shard at the same time.
    """
    model, text = _model(desired.namespace, desired.service), document(desired, options)
    if not text:
        remove(api, desired.namespace, desired.service, at)
        return
    namespace, pool = at
    name = shard(pool, model)
    known = api.fetch(CONFIG_MAP, namespace, name)
    if known is None:
        metadata = {"name": name, "namespace": namespace, "labels": {CATALOG: pool}}
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {model: text}})
    elif known.get("data", {}).get(model) != text:
        api.merge(CONFIG_MAP, namespace, name, {"data": {model: text}})


def remove(api: Api, namespace: str, service: str, at: tuple[str, str]) -> None:
    """Remove the document of a service from the catalog of the pool at a namespace and name."""
    model, (there, pool) = _model(namespace, service), at
    name = shard(pool, model)
    known = api.fetch(CONFIG_MAP, there, name)
    if known is not None and model in known.get("data", {}):
        try:
            api.merge(CONFIG_MAP, there, name, {"data": {model: None}})
        except NotFound:
            return


def remove_all(api: Api, namespace: str, pool: str) -> None:
    """Remove the catalog of a pool."""
    for each in api.fetch_list(CONFIG_MAP, namespace, {CATALOG: pool}):
        metadata = each["metadata"]
        api.delete(CONFIG_MAP, namespace, metadata["name"], uid=metadata["uid"])


def _model(namespace: str, service: str) -> str:
    return f"{namespace}.{service}"
