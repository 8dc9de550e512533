"""Images of rendered pods: those of the operator's own, else of allowed registries. Pure.

They are checked after the patches, which may add containers. What runs already goes on: a shorter list refuses what is
new.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from common.errors import InvalidInput
from common.images import refusal
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def refuse_images(
    manifests: Iterable[Manifest],
    options: Options,
    there: Iterable[Mapping[str, Any]] = (),
    pinned: Collection[str] = (),
) -> None:
    """Raise InvalidInput, naming object, container and image, for an image that the installation does not allow.

    Args:
        there: Deployments on the cluster, which keep their images.
        pinned: names of Deployments with a pinned pod template, whose images were allowed when it was rendered.
    """
    if not options.allowed_registries:
        return
    known = {each["metadata"]["name"]: {image for _, image in images(each)} for each in there}
    own = {options.runtime_image, options.gpu_runtime_image}
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Deployment" and name in pinned:
            continue
        for of, image in images(manifest):
            if image in own or (manifest["kind"] == "Deployment" and image in known.get(name, ())):
                continue
            if why := refusal(image, options.allowed_registries):
                raise InvalidInput(f"{of} of {manifest['kind']} {name}: {why}", field="image")


def images(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each image of an object's pods, and what has it, such as `container runtime` or `volume data`."""
    template = _mapping(_mapping(manifest.get("spec")).get("template"))
    pod = _mapping(template.get("spec"))
    for kind in _CONTAINERS:
        for container in _mappings(pod.get(kind)):
            yield f"container {container.get('name')}", str(container.get("image") or "")
    for volume in _mappings(pod.get("volumes")):
        if "image" in volume:
            yield f"volume {volume.get('name')}", str(_mapping(volume["image"]).get("reference") or "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, Mapping))
