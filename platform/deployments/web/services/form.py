"""Form of a service file: the fields that it has. Pure."""

from common.files.editor.form import Field
from deployments.domain.service_file.scaling import ScaleMetric

_PREDICTOR = ("spec", "predictor")


def fields_of(policies: tuple[str, ...]) -> tuple[Field, ...]:
    """Return the fields of the form.

    Args:
        policies: names of the existing rollout policies.
    """
    return (
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
