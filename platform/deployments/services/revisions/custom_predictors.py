"""Custom predictors: the version that represents an image, and what a rollout of one cannot do."""

from functools import partial

from common.errors import Conflict, InvalidInput
from deployments.domain.policy import Policy, stored_policy
from deployments.domain.service_file import ServiceSpec, imported_model
from deployments.domain.service_file.predictor import CONTAINER
from deployments.models import InferenceService, Revision, RolloutPolicy
from deployments.reconcile.service_change import Change
from deployments.services.files.model_owners import give_to_team_of_namespace
from registry.models import POOL_PLATFORM, ModelVersion
from registry.services.images import check_has_files, image_add, image_version


def version_of_image(change: Change, spec: ServiceSpec, *, actor: str) -> ModelVersion | None:
    """Return the version that represents image or program of a service's custom predictor; None for a model.

    It is a version of the model `<namespace>.<service>`, as files imported for a service are.
    """
    if spec.custom is None:
        return None
    model = imported_model(spec.namespace, spec.name)
    what = "Program" if spec.custom.working_dir else "Image"
    version = image_version(model=model, image=spec.custom.image, now=change.now, actor=actor, what=what)
    if version._state.adding:
        change.write(partial(give_to_team_of_namespace, model, spec.namespace, actor=actor, now=change.now))
        change.write(partial(image_add, version, now=change.now, actor=actor))
    return version


def check_serves(spec: ServiceSpec, version: ModelVersion) -> None:
    """Raise Conflict unless a revision of `spec` can run the version: a model's files, or its own image."""
    if spec.model_pool is not None:
        if version.platform != POOL_PLATFORM:
            raise Conflict(f"service {spec.namespace}/{spec.name} is a model pool, which serves no version by itself")
    elif spec.custom is None:
        check_has_files(version)
    elif version.digest != spec.custom.digest:
        its, other = ("workingDir", "folder") if spec.custom.working_dir else ("image", "image")
        raise Conflict(
            f"{CONTAINER}.{its} is {(spec.custom.working_dir or spec.custom.image)[:200]!r}, and {version} is no "
            f"version of it; apply the service's file with another {other}, which rolls it out"
        )


def check_compares(spec: ServiceSpec, policy: Policy | RolloutPolicy | None, stable: Revision | None = None) -> None:
    """Raise InvalidInput where a policy compares outputs that are not recorded: of custom predictors, and in pools."""
    custom = spec.custom is not None or (stable is not None and bool(stable.custom))
    pooled = bool(spec.pool) or (stable is not None and bool(stable.pool))
    if not (custom or pooled) or policy is None:
        return
    found = stored_policy(policy.document) if isinstance(policy, RolloutPolicy) else policy
    compares = any(step.gate is not None and step.gate.comparison is not None for step in found.steps)
    if compares or (found.background is not None and found.background.comparison is not None):
        what = " for a custom predictor: errors and latency are measured of every container"
        who = "the runtime of models alone records"
        if not custom:
            what, who = ", or spec.predictor.pool", "replicas of model pools do not record"
        raise InvalidInput(
            f"policy {found.name} compares outputs, which {who}; leave `comparison` out{what}",
            field="spec.rollout.policy",
        )


def refuse_custom(service: InferenceService, revision: Revision | None, what: str) -> None:
    """Raise Conflict where a service runs a custom predictor or is or has a pool, of which `what` is impossible.

    Args:
        revision: the one in question; None without one.
    """
    if revision is not None and revision.custom:
        raise Conflict(
            f"service {service} runs a custom predictor, whose container {what}; that is for models, which Fairlead's "
            "own runtime serves"
        )
    if revision is not None and (revision.pool or revision.model_pool):
        pool = revision.pool or service
        raise Conflict(
            f"the runtime of model pool {pool} serves many models and {what}; that is for services with replicas of "
            "their own"
        )
