"""Model pools in a service file: `spec.predictor.modelPool` is one, `spec.predictor.pool` names one. Pure.

A model pool is a service without a model: its replicas answer for the services in it, which have none of their own.
What a pool leaves to its services, and a service to its pool, is refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from common.files.document import Document
from common.files.quantities import parse_memory
from common.identifiers import check_dns_label
from deployments.domain.service_file.pods import FIELDS as POD_FIELDS
from deployments.domain.service_file.scaling import Scaling, parse_scaling
from integrations.clusters.base import Resources

MODEL_POOL = "spec.predictor.modelPool"
POOL = "spec.predictor.pool"
EVERYBODY = "*"
"""In place of a namespace: services of all may be in the pool."""
_BUDGET_PERCENT = 80
_MOST_SHARED = 1000
_OF_SERVICES = "is of the services in a pool; write it into their files"
_OF_POOL = "is of replicas, and those are the pool's; write it into the pool's file, or leave spec.predictor.pool out"
_NOT_IN_POOLS = "cannot be honoured in a model pool, whose replicas serve models alone; leave spec.predictor.pool out"


@dataclass(frozen=True, slots=True)
class ModelPool:
    """A model pool.

    Attributes:
        memory_budget_bytes: memory that the loaded models of a replica may take.
        shared_with: namespaces beside its own whose services may be in it; `*` for all.
    """

    memory_budget_bytes: int
    shared_with: tuple[str, ...] = ()

    def takes(self, own: str, namespace: str) -> bool:
        """Return whether services of a namespace may be in the pool, which is in the namespace `own`."""
        return namespace == own or namespace in self.shared_with or EVERYBODY in self.shared_with


def pool_of(predictor: Document) -> Document | None:
    """Return the model pool of `spec.predictor`; None without one."""
    for other in ("model", "containers"):
        if predictor.raw("modelPool", None) is not None and predictor.raw(other, None) is not None:
            predictor.fault("modelPool", f"and spec.predictor.{other} exclude each other; leave out one of them")
    return predictor.optional("modelPool")


def parse_model_pool(spec: Document, pool: Document, resources: Resources) -> ModelPool:
    """Return a model pool; reports the fields that a pool leaves to its services."""
    predictor = spec.document("predictor")
    _refuse(spec, ("rollout", "transformer", "explainer", "access", "cors", "limits", "objectives"), _OF_SERVICES)
    _refuse(predictor, ("pool", "batcher", "logger", "containerConcurrency", "timeout"), _OF_SERVICES)
    _refuse(pool, ("env", "egress"), _OF_SERVICES)
    if predictor.raw("minReplicas", None) == 0:
        predictor.fault("minReplicas", "is 0, but a model pool answers for services without replicas; keep at least 1")
    if resources.accelerator:
        pool.fault("resources.limits", "has a GPU, and model pools run on CPUs; leave it out")
    return ModelPool(_budget(pool, resources), _shared(pool))


def parse_pool(
    spec: Document, predictor: Document, model: Document, namespace: str, *, is_model: bool
) -> tuple[str, Scaling | None]:
    """Return the pool of a service, `namespace/name`, and the scaling of own replicas; reports fields of the pool.

    With `minReplicas: 0` and `maxReplicas` its load may earn it replicas.
    """
    found = predictor.text("pool", check=_check_pool)
    if not is_model:
        predictor.fault("pool", "is for models; leave it out, or serve a model by spec.predictor.model")
    earns = predictor.raw("minReplicas", None) == 0 and predictor.raw("maxReplicas", None) is not None
    own = parse_scaling(predictor) if earns else None
    if own is None:
        _refuse(predictor, ("minReplicas", "maxReplicas", "scaleMetric", "scaleTarget", "autoScaling"), _OF_POOL)
        _refuse(model, ("resources",), _OF_POOL)
    _refuse(predictor, ("containerConcurrency", "deploymentStrategy", *POD_FIELDS), _OF_POOL)
    _refuse(spec, ("placement", "patches", "drift"), _OF_POOL)
    _refuse(predictor, ("logger",), _NOT_IN_POOLS)
    _refuse(model, ("env", "egress"), _NOT_IN_POOLS)
    _refuse(spec, ("transformer", "explainer"), _NOT_IN_POOLS)
    return found if "/" in found else f"{namespace}/{found}", own


def model_pool_json(pool: ModelPool | None) -> dict[str, Any]:
    """Return what revisions of a pool differ by, as `stored_model_pool` reads it; empty for None.

    Who may use the pool is no part of it.
    """
    return {} if pool is None else {"memoryBudget": pool.memory_budget_bytes}


def stored_model_pool(value: Mapping[str, Any]) -> ModelPool | None:
    """Return the pool from the JSON of `model_pool_json`."""
    return ModelPool(int(value["memoryBudget"])) if value else None


def _budget(pool: Document, resources: Resources) -> int:
    said, memory = pool.raw("memoryBudget", None), resources.memory_bytes
    if said is None:
        if memory is None:
            pool.fault(
                "memoryBudget",
                "is missing; say how much memory the models of a replica may take, such as 4Gi, or request memory in "
                f"{MODEL_POOL}.resources, of which they get {_BUDGET_PERCENT} %",
            )
        return (memory or 0) * _BUDGET_PERCENT // 100
    found = pool.attempt(0, parse_memory, said, pool.path("memoryBudget"))
    if memory is not None and found >= memory:
        pool.fault("memoryBudget", "is not less than the requested memory, of which the runtime itself needs a part")
    return found


def _shared(pool: Document) -> tuple[str, ...]:
    found: Any = pool.raw("sharedWith", [])
    if not isinstance(found, list) or len(found) > _MOST_SHARED or not all(isinstance(each, str) for each in found):
        pool.fault("sharedWith", f"is no list of at most {_MOST_SHARED} namespaces")
        return ()
    for each in found:
        if each != EVERYBODY:
            pool.attempt("", check_dns_label, each, field=pool.path("sharedWith"))
    return tuple(sorted(set(found)))


def _check_pool(pool: str, *, field: str) -> str:
    namespace, _, name = pool.rpartition("/")
    for each in (name, *([namespace] if "/" in pool else [])):
        try:
            check_dns_label(each, field=field)
        except InvalidInput as error:
            raise InvalidInput(
                f"{field} is {pool[:140]!r}; expected the name of a model pool, or NAMESPACE/NAME", field=field
            ) from error
    return pool


def _refuse(document: Document, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in document.names:
            document.fault(name, why)
