"""Service file rewrite: puts a revision's content into the file. Pure."""

import copy
from collections.abc import Mapping
from typing import Any

from clusters.domain.patches import patches_json
from clusters.domain.resources import resources_json
from deployments.domain.service_file.companion import companion_json
from deployments.domain.service_file.file import STOP
from deployments.domain.service_file.logger import logger_json
from deployments.domain.service_file.placement import placement_json
from deployments.domain.service_file.pods import FIELDS, pod_json
from deployments.domain.service_file.predictor import custom_json
from deployments.domain.service_file.scaling import put_scaling
from deployments.domain.service_file.values import RevisionContent, ServiceSpec
from deployments.domain.service_file.variables import env_json
from integrations.clusters.base import CompanionKind, PodFields


def file_stopped(document: Mapping[str, Any], *, stopped: bool) -> dict[str, Any]:
    """Return the service file `document` with the service stopped, or running."""
    changed = copy.deepcopy(dict(document))
    metadata = dict(changed.get("metadata") or {})
    if stopped:
        metadata["annotations"] = {STOP: "true"}
    else:
        metadata.pop("annotations", None)
    return {**changed, "metadata": metadata}


def file_saying(document: Mapping[str, Any], spec: ServiceSpec, content: RevisionContent) -> dict[str, Any]:
    """Return the service file `document`, whose spec is `spec`, changed where `content` differs."""
    changed = copy.deepcopy(dict(document))
    predictor = changed["spec"]["predictor"]
    model = _put_served(predictor, spec, content)
    if content.custom is None and content.model_pool is None and content.storage_uri is not None:
        model["storageUri"] = content.storage_uri
    _put_pool(predictor, spec, content)
    if (dict(content.env), dict(content.secret_env)) != (dict(spec.env), dict(spec.secret_env)):
        model["env"] = env_json(content.env, content.secret_env)
    if content.egress != spec.egress:
        (model if content.custom is None else predictor)["egress"] = content.egress
    if dict(content.model_config) != dict(spec.model_config):
        if content.custom is None:
            model["config"] = dict(content.model_config)
        predictor.pop("batcher", None)  # the configuration has it too
    if content.logger != spec.logger:
        predictor.pop("logger", None)
        if content.logger is not None:
            predictor["logger"] = logger_json(content.logger)
    if (content.resources, content.pod) != (spec.resources, spec.pod):
        model["resources"] = resources_json(content.resources)
        _put_pod(predictor, model, content.pod)
    for name, before, after in (
        ("transformer", _transformer(spec), _transformer(content)),
        ("explainer", _explainer(spec), _explainer(content)),
        ("placement", placement_json(spec.placement), placement_json(content.placement)),
        ("patches", patches_json(spec.patches), patches_json(content.patches)),
    ):
        if before != after:
            changed["spec"].pop(name, None)
            if after:
                changed["spec"][name] = after
    return changed


def _transformer(said: ServiceSpec | RevisionContent) -> dict[str, Any]:
    return companion_json(said.transformer, CompanionKind.TRANSFORMER)


def _explainer(said: ServiceSpec | RevisionContent) -> dict[str, Any]:
    return companion_json(said.explainer, CompanionKind.EXPLAINER)


def _put_served(predictor: dict[str, Any], spec: ServiceSpec, content: RevisionContent) -> dict[str, Any]:
    """Write what answers requests into `spec.predictor`, and return its model, or its container."""
    if content.model_pool is not None:  # a pool stays one
        pool: dict[str, Any] = predictor["modelPool"]
        if content.model_pool.memory_budget_bytes != getattr(spec.model_pool, "memory_budget_bytes", None):
            pool["memoryBudget"] = str(content.model_pool.memory_budget_bytes)
        return pool
    if content.custom == spec.custom:
        same: dict[str, Any] = predictor["model"] if spec.custom is None else predictor["containers"][0]
        return same
    before = predictor.pop("model", None) if spec.custom is None else predictor.pop("containers")[0]
    for name in ("protocolVersion", "containers", "egress"):
        predictor.pop(name, None)
    kept = {name: before[name] for name in ("env", "resources") if name in before}
    egress = {} if spec.egress is None else {"egress": spec.egress}
    if content.custom is None:
        model = predictor["model"] = {"modelFormat": {"name": content.model_format}, **kept, **egress}
        return model
    said = custom_json(content.custom)
    container: dict[str, Any] = {**said["containers"][0], **kept}
    predictor.update({**said, **egress, "containers": [container]})
    return container


def _put_pool(predictor: dict[str, Any], spec: ServiceSpec, content: RevisionContent) -> None:
    """Write the pool of a service, or the scaling of its own replicas, into `spec.predictor`."""
    if content.pool != spec.pool:
        predictor.pop("pool", None)
    if content.pool:
        put_scaling(predictor, content.own_scaling)
        predictor["pool"] = content.pool if content.pool != spec.pool else predictor["pool"]
    elif content.scaling != spec.scaling or spec.pool:
        put_scaling(predictor, content.scaling)


def _put_pod(predictor: dict[str, Any], model: dict[str, Any], pod: PodFields) -> None:
    """Write pod fields into a service file's `spec.predictor`, and a CPU limit into the resources of its model."""
    said = pod_json(pod)
    for name in FIELDS:
        predictor.pop(name, None)
        if name in said:
            predictor[name] = said[name]
    if "cpuLimit" in said:
        resources = model["resources"]
        resources["limits"] = {**resources.get("limits", {}), "cpu": said["cpuLimit"]}
