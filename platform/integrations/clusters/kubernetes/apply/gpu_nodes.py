"""Repartition of a GPU node: cordon, drain, and MIG reconfiguration by NVIDIA's MIG manager. Called by the driver.

    configs    an entry of the ConfigMap that MIG manager reads, beside those of others
    cordoned   spec.unschedulable, with an annotation that names the repartition; only that one uncordons the node
    evicted    the Eviction API, which keeps disruption budgets
    config     the label that MIG manager acts on, and its answer set to `pending`: an old one is not for this

Sources: NVIDIA GPU Operator, "GPU Operator with MIG" (the labels; `migManager.config.name` of the ClusterPolicy names
the ConfigMap, whose `config.yaml` it is); mig-parted, version v1 of the file.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from common.errors import Conflict
from integrations.clusters.base import DesiredNode, ObservedNode
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.observe.gpus import gpus_of
from integrations.clusters.kubernetes.options import Options, Repartition

Json = dict[str, Any]
CONFIG_MAP, KEY = "fairlead-mig-parted-config", "config.yaml"
CORDONED_FOR = "fairlead/cordoned-for"
CONFIG, STATE, PENDING = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "pending"
_MOST_PODS, _TIMEOUT_S = 1000, 10.0


def observe(api: Api, options: Options, name: str) -> ObservedNode | None:
    """Return the observed node, None where it is absent; raises Conflict where repartitions are not allowed."""
    allowed = _allowed(options, name)
    node = _node(api, name)
    if node is None:
        return None
    pods = api.find(resource_types.POD, "", {"spec.nodeName": name}, most=_MOST_PODS, timeout_s=_TIMEOUT_S)
    return ObservedNode(
        gpus=gpus_of(node, pods),
        cordoned=bool(node["spec"].get("unschedulable")),
        mark=node["metadata"].get("annotations", {}).get(CORDONED_FOR, ""),
        configs=_configs(_file(api, allowed)),
        delay_s=allowed.delay_s,
    )


def apply(api: Api, options: Options, desired: DesiredNode) -> list[str]:
    """Advance the node towards the desired state; returns what blocks it. Raises what `observe` raises."""
    allowed = _allowed(options, desired.name)
    held = _write(api, allowed, desired.configs)
    node = _node(api, desired.name)
    if node is None:
        return held
    _cordon(api, node, desired)
    for pod in desired.evicted:
        namespace, _, name = pod.partition("/")
        if why := api.evict(namespace, name):
            held.append(why)
    if desired.config and node["metadata"].get("labels", {}).get(CONFIG) != desired.config:
        labels = {CONFIG: desired.config, STATE: PENDING}
        api.merge(resource_types.NODE, "", desired.name, {"metadata": {"labels": labels}})
    return held


def found_file(api: Api, allowed: Repartition) -> str:
    """Return the problem of the ConfigMap that MIG manager is to read; empty without one."""
    found = _file(api, allowed)
    where = f"ConfigMap {CONFIG_MAP} in {allowed.namespace}"
    if found is None:
        return f"there is no {where}"
    return "" if isinstance(_document(found).get("mig-configs"), dict) else f"{where} has no {KEY} with mig-configs"


def _allowed(options: Options, node: str) -> Repartition:
    if options.repartition is None:
        raise Conflict(f"node {node} cannot be worked on: the cluster's file says no `repartition` any more; add it")
    return options.repartition


def _node(api: Api, name: str) -> Json | None:
    found = api.find(resource_types.NODE, "", {"metadata.name": name}, most=1, timeout_s=_TIMEOUT_S)
    return found[0] if found else None


def _file(api: Api, allowed: Repartition) -> Json | None:
    return api.fetch(resource_types.CONFIG_MAP, allowed.namespace, CONFIG_MAP)


def _document(found: Json | None) -> Json:
    try:
        document = yaml.safe_load((found or {}).get("data", {}).get(KEY, ""))
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def _configs(found: Json | None) -> Mapping[str, object]:
    configs = _document(found).get("mig-configs")
    return configs if isinstance(configs, dict) else {}


def _write(api: Api, allowed: Repartition, wanted: Mapping[str, object]) -> list[str]:
    """Add entries to MIG manager's file and leave all others; returns what blocks it."""
    if not wanted:
        return []
    wrong = found_file(api, allowed)
    if wrong:
        return [f"{wrong}; make it as the reference page of Kubernetes capacity says"]
    found = _file(api, allowed) or {}
    document = _document(found)
    if all(document["mig-configs"].get(name) == entry for name, entry in wanted.items()):
        return []
    document["mig-configs"] |= wanted
    text = yaml.safe_dump(document, sort_keys=False)
    version = found["metadata"]["resourceVersion"]  # a faster writer is not overwritten
    changes = {"metadata": {"resourceVersion": version}, "data": {KEY: text}}
    api.merge(resource_types.CONFIG_MAP, allowed.namespace, CONFIG_MAP, changes)
    return []


def _cordon(api: Api, node: Json, desired: DesiredNode) -> None:
    """Cordon the node, unless someone else did; uncordon it where this repartition cordoned it."""
    metadata, is_cordoned = node["metadata"], bool(node["spec"].get("unschedulable"))
    is_ours = metadata.get("annotations", {}).get(CORDONED_FOR) == desired.mark
    if desired.cordoned and not is_cordoned:
        mark, unschedulable = desired.mark, True
    elif not desired.cordoned and is_ours:
        mark, unschedulable = None, None
    else:
        return
    # With the version that was read, so that no one else's cordon is taken for ours.
    changed = {"resourceVersion": metadata["resourceVersion"], "annotations": {CORDONED_FOR: mark}}
    api.merge(resource_types.NODE, "", desired.name, {"metadata": changed, "spec": {"unschedulable": unschedulable}})
