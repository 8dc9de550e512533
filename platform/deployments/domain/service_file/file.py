"""Service file parser. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from clusters.domain.patches import parse_patches
from clusters.domain.resources import parse_resources
from common.errors import InvalidInput
from common.files.document import Document, parse_document
from common.identifiers import check_dns_label
from deployments.domain.service_file.access import parse_access
from deployments.domain.service_file.clusters import parse_drift
from deployments.domain.service_file.companion import parse_companion
from deployments.domain.service_file.cors import parse_cors
from deployments.domain.service_file.delivery import parse_rolling, parse_timeout
from deployments.domain.service_file.limits import parse_limits
from deployments.domain.service_file.logger import parse_logger
from deployments.domain.service_file.model import check_storage_uri, parse_config, parse_egress, parse_format
from deployments.domain.service_file.objectives import parse_objectives
from deployments.domain.service_file.placement import parse_placement
from deployments.domain.service_file.pods import check_cpu_limit, parse_pod
from deployments.domain.service_file.pools import parse_model_pool, parse_pool, pool_of
from deployments.domain.service_file.predictor import (
    check_resources,
    check_variables,
    container_of,
    parse_custom,
)
from deployments.domain.service_file.scaling import Scaling, parse_scaling
from deployments.domain.service_file.values import MOST_REVISIONS, ServiceSpec
from deployments.domain.service_file.variables import parse_env
from integrations.clusters.base import CompanionKind, Resources

STOP = "serving.kserve.io/stop"
"""The annotation by which KServe stops a service."""
API_VERSION = "serving.kserve.io/v1beta1"
KIND = "InferenceService"
# A revision is called `<service>-00001`, which must be a DNS label too.
LONGEST_NAME = 63 - len("-00001")

# Fields of KServe's InferenceService that its users write, by what does the same here.
_INSTEAD = {
    "canaryTrafficPercent": "a policy says the weights of a rollout, and spec.rollout.policy names it",
    "protocolVersion": "V1 and V2 are served side by side, so leave it out",
    "resources": "resources belong to spec.predictor.model",
    "env": "env belongs to spec.predictor.model",
    "annotations": "annotations of pods configure a cluster's webhooks, so they are left to patches",
}


def parse_service(value: object, *, namespace: str | None = None, name: str | None = None) -> ServiceSpec:
    """Return the spec of a service file.

    Args:
        namespace, name: the required values, where the address has them; the file may then leave them out.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault; of several faults it names the first,
            and `details` has a sentence for each.
    """
    return parse_document(value, "the service file", lambda document: _service(document, namespace, name))


def _service(document: Document, namespace: str | None, name: str | None) -> ServiceSpec:
    _check_constant(document, "kind", KIND)  # first: another kind's apiVersion is right for that kind
    _check_constant(document, "apiVersion", API_VERSION)
    metadata = document.or_empty("metadata")
    found_name = _agreed(metadata, "name", name, default=None, check=_check_name)
    found_namespace = _agreed(metadata, "namespace", namespace, default="default", check=check_dns_label)
    spec = document.document("spec")
    predictor = spec.document("predictor")
    container, pool = container_of(predictor), pool_of(predictor)
    model = container or pool or predictor.document("model")
    rollout = spec.optional("rollout")
    resources = document.attempt(Resources(), parse_resources, model)
    pod = parse_pod(predictor, model)
    check_cpu_limit(model, pod, resources)
    env, secret_env = parse_env(model) if pool is None else ({}, {})
    if pool is not None:
        served = _of_pool(spec, pool, resources)
    else:
        served = _of_model(predictor, model) if container is None else _of_container(predictor, container)
    if predictor.raw("pool", None) is not None:
        served["pool"], served["own_scaling"] = parse_pool(
            spec, predictor, model, found_namespace, is_model=container is None and pool is None
        )
        scaling = Scaling(1, 1)
    else:
        scaling = parse_scaling(predictor)
    if container is not None:
        check_resources(container, resources)
        check_variables(container, {**env, **secret_env})
    result = ServiceSpec(
        namespace=found_namespace,
        name=found_name,
        **served,
        scaling=scaling,
        env=env,
        secret_env=secret_env,
        resources=resources,
        logger=predictor.part("logger", parse_logger),
        policy=None if rollout is None else rollout.text("policy"),
        cluster=spec.text("cluster", default=""),
        drift=parse_drift(spec),
        patches=spec.attempt((), parse_patches, spec),
        stopped=_is_stopped(metadata),
        transformer=spec.attempt(None, parse_companion, spec, CompanionKind.TRANSFORMER, found_name),
        explainer=spec.attempt(None, parse_companion, spec, CompanionKind.EXPLAINER, found_name),
        request_timeout_s=parse_timeout(predictor),
        rolling=predictor.attempt(None, parse_rolling, predictor, scaling.least),
        placement=parse_placement(spec, resources),
        revision_history_limit=_history_limit(spec),
        access=spec.attempt(None, parse_access, spec),
        cors=spec.attempt(None, parse_cors, spec),
        limits=spec.attempt(None, parse_limits, spec),
        objectives=spec.attempt(None, parse_objectives, spec),
        pod=pod,
    )
    if pod.spread and result.placement.replicas is not None:
        predictor.fault(
            "topologySpreadConstraints",
            "and spec.placement.replicas both say how replicas are spread; leave out one of them",
        )
    for part in (document, metadata, spec, predictor, model, *([rollout] if rollout is not None else [])):
        part.refuse_unknown(_INSTEAD)
    return result


def _of_model(predictor: Document, model: Document) -> dict[str, Any]:
    """Return what only a model has."""
    return {
        "model_format": parse_format(model),
        "storage_uri": model.text("storageUri", check=check_storage_uri),
        "egress": parse_egress(model),
        "model_config": with_batcher(predictor, parse_config(model)),
    }


def _of_pool(spec: Document, pool: Document, resources: Resources) -> dict[str, Any]:
    """Return what a model pool has in place of that."""
    return {
        "model_format": "",
        "storage_uri": "",
        "egress": None,
        "model_config": {},
        "model_pool": parse_model_pool(spec, pool, resources),
    }


def _of_container(predictor: Document, container: Document) -> dict[str, Any]:
    """Return what a custom predictor has in place of that."""
    return {
        "model_format": "",
        "storage_uri": "",
        "egress": parse_egress(predictor),
        "model_config": {},
        "custom": parse_custom(predictor, container),
    }


def imported_model(namespace: str, name: str) -> str:
    """Return the name of the model that holds the versions imported for a service; it is no other service's."""
    return f"{namespace}.{name}"


def _history_limit(spec: Document) -> int | None:
    name = "revisionHistoryLimit"
    return None if spec.raw(name, None) is None else spec.integer(name, minimum=0, maximum=MOST_REVISIONS)


def _check_constant(document: Document, field: str, expected: str) -> None:
    if (found := document.text(field)) != expected:
        document.fault(field, f"is {found[:60]!r}; expected {expected}")


def _agreed(
    metadata: Document, field: str, asked: str | None, *, default: str | None, check: Callable[..., str]
) -> str:
    found = metadata.text(field, default=asked or default)
    if asked is not None and found != asked:
        metadata.fault(field, f"is {found[:80]!r}, but the service is put as {asked!r}; give both the same {field}")
    metadata.attempt("", check, found, field=metadata.path(field))
    return found


def _is_stopped(metadata: Document) -> bool:
    annotations = metadata.optional("annotations")
    if annotations is None:
        return False
    found = annotations.text(STOP, default="false")
    annotations.refuse_unknown()
    if found not in ("true", "false"):
        annotations.fault(STOP, f'is {found[:60]!r}; expected "true" or "false"')
    return found == "true"


def _check_name(name: str, *, field: str) -> str:
    check_dns_label(name, field=field)
    if len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"{field} has {len(name)} characters; a service's may have {LONGEST_NAME}, for its revisions add six",
            field=field,
        )
    return name


_MAX_BATCH_SIZE = 32  # KServe's default
_MOST_ROWS = 1_000_000
_LONGEST_MS = 3_600_000
_LONGEST_S = 3600
# Fields of a ModelConfig that configure batching.
_SAID_BY_BATCHER = ("max_batch_size", "dynamic_batching", "sequence_batching", "ensemble_scheduling")


def with_batcher(predictor: Document, config: Mapping[str, object]) -> dict[str, object]:
    """Return `config`, fields of a ModelConfig, with those of the predictor's batcher; they exclude each other."""
    batcher = predictor.optional("batcher")
    if batcher is None:
        return dict(config)
    if both := [name for name in _SAID_BY_BATCHER if name in config]:
        predictor.fault(
            "batcher",
            f"and spec.predictor.model.config.{both[0]} both say how requests are put together; leave out one of them",
        )
    rows = batcher.integer("maxBatchSize", minimum=1, maximum=_MOST_ROWS, default=_MAX_BATCH_SIZE)
    delay_ms = batcher.integer("maxLatency", minimum=0, maximum=_LONGEST_MS, default=0)
    timeout_s = batcher.integer("timeout", minimum=0, maximum=_LONGEST_S, default=0)
    batcher.refuse_unknown()
    batching: dict[str, object] = {"max_queue_delay_microseconds": delay_ms * 1000} if delay_ms else {}
    if timeout_s:
        microseconds = timeout_s * 1_000_000
        batching["default_queue_policy"] = {"timeout_action": "REJECT", "default_timeout_microseconds": microseconds}
    return {**config, "max_batch_size": rows, "dynamic_batching": batching}
