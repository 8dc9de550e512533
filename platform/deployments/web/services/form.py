"""Form of a service file: the fields that it has. Pure."""

from common.files.editor.form import Field
from deployments.domain.service_file.scaling import ScaleMetric

_OF_MODELS = ("model",)
_PREDICTOR = ("spec", "predictor")


def fields_of(policies: tuple[str, ...], *, is_custom: bool = False) -> tuple[Field, ...]:
    """Return the fields of the form.

    Args:
        policies: names of the existing rollout policies.
        is_custom: the file has a custom predictor, whose container is changed in the text.
    """
    fields = (
        Field(
            "model", "Model", (*_PREDICTOR, "model", "storageUri"), "text", "models:/NAME/VERSION or models:/NAME@ALIAS"
        ),
        Field(
            "policy", "Rollout policy", ("spec", "rollout", "policy"), "choice", "how changes reach clients", policies
        ),
        Field("least", "Minimum replicas", (*_PREDICTOR, "minReplicas")),
        Field("most", "Maximum replicas", (*_PREDICTOR, "maxReplicas")),
        Field(
            "metric",
            "Scaling metric",
            (*_PREDICTOR, "scaleMetric"),
            "choice",
            "what each replica is measured by",
            tuple(ScaleMetric),
        ),
        Field("target", "Target per replica", (*_PREDICTOR, "scaleTarget")),
        Field(
            "concurrency",
            "Maximum concurrent requests",
            (*_PREDICTOR, "containerConcurrency"),
            help="of each replica; 0 is no limit",
        ),
    )
    return tuple(each for each in fields if not is_custom or each.name not in _OF_MODELS)
