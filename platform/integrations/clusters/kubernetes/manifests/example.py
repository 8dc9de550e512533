"""Patch validation: tries a cluster's patches on an example service before they reach a real one. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from integrations.clusters.base import Autoscaling, Desired, DesiredRevision, Patch
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.patched import difference, unpatched
from integrations.clusters.kubernetes.options import Options


def refuse_unfit(patches: Sequence[Patch], options: Options) -> None:
    """Raise InvalidInput, naming the patch, where one does not fit or changes a protected field."""
    _rendered(example_of(patches, options, "default"), replace(options, custom_metrics=True))


def difference_of(patches: Sequence[Patch], options: Options) -> str:
    """Return the changes of patches to the example, as a unified diff of YAML."""
    example = example_of(patches, options, "default")
    before, after = (_rendered(each, options) for each in (unpatched(example), example))
    return "".join(difference(one, other) for one, other in zip(before, after, strict=True) if one != other)


def example_of(patches: Sequence[Patch], options: Options, namespace: str) -> Desired:
    """Return a service with one revision that has these patches."""
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
    return Desired(namespace, "example", 1, (revision,))


def _rendered(example: Desired, options: Options) -> list[Manifest]:
    return render(example, {revision.name: 100 for revision in example.revisions}, options)
