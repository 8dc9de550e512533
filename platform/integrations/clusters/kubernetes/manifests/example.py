"""Does a patch of a cluster fit what is rendered there? Tried on an example, before a service meets it. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from integrations.clusters.base import Autoscaling, Desired, DesiredRevision, Patch
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.options import Options


def refuse_unfit(patches: Sequence[Patch], options: Options) -> None:
    """Raise InvalidInput, naming the patch, where one does not fit, or touches what is not the operator's."""
    artifact = f"file://{options.artifacts_root.rstrip('/')}/example"
    revision = DesiredRevision(
        "example-00001",
        "example",
        "1",
        artifact,
        "sha256:0",
        replicas=1,
        weight_percent=100,
        autoscaling=Autoscaling(2, {"concurrency": 1.0}),
        patches=tuple(patches),
    )
    example = Desired("default", "example", 1, (revision,))
    render(example, {revision.name: 100}, replace(options, custom_metrics=True))
