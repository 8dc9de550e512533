"""Pod templates of Deployments as they were applied last, by field ownership (server-side apply). Pure.

A revision that has served keeps the template that its Deployment has, until that is recorded; then the record counts
(`manifests/pinned.py`). A template is

    as rendered                where the object has the seal of the rendered manifest
    the fields that we own     else: an earlier release, another image or another cluster file rendered it
    and as rendered again      those of them that others have changed, since their former value is gone
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from integrations.clusters.base import Desired, DesiredRevision, PodTemplates
from integrations.clusters.kubernetes.manifests.names import Manifest, revision_of
from integrations.clusters.kubernetes.manifests.pinned import with_restart, without_restart
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER, differences, has_seal, sealed
from integrations.clusters.kubernetes.observe.field_ownership import Path, owned

Json = Mapping[str, Any]
_TEMPLATE: Path = ("f:spec", "f:template")


def keep_templates(desired: Desired, manifests: Iterable[Manifest], there: Iterable[Json]) -> None:
    """Set the pod templates of revisions without recorded ones to those on the cluster, in place.

    Args:
        manifests: with their owner references, by which seals are compared.
        there: the Deployments on the cluster.
    """
    for manifest, live, revision in _kept(desired, manifests, there):
        template = applied_template(manifest, live)
        manifest["spec"] = {**manifest["spec"], "template": with_restart(template, revision.restart_number)}


def templates_to_pin(
    desired: Desired, manifests: Iterable[Manifest], there: Iterable[Json]
) -> Mapping[str, PodTemplates]:
    """Return the pod templates to record, by revision: of those of which every Deployment has served.

    Takes what `keep_templates` takes.
    """
    found: dict[str, dict[str, Manifest]] = {}
    for manifest, live, revision in _kept(desired, manifests, there):
        template = without_restart(applied_template(manifest, live))
        found.setdefault(revision.name, {})[manifest["metadata"]["name"]] = template
    needed = {each.name: 1 + len(each.companions) for each in desired.revisions}
    return {name: templates for name, templates in found.items() if len(templates) == needed[name]}


def applied_template(manifest: Manifest, live: Json) -> Manifest:
    """Return the pod template of a Deployment as it was applied last.

    Args:
        manifest: the Deployment as it is rendered now, with its owner references.
        live: the same as the API server has it.
    """
    wanted: Manifest = manifest["spec"]["template"]
    marked = sealed(manifest)
    if has_seal(marked, live):
        return wanted
    template = owned(live, FIELD_MANAGER, _TEMPLATE)
    if not isinstance(template, dict):
        return wanted
    for each in differences(marked, live):
        if each.path[: len(_TEMPLATE)] == _TEMPLATE:
            _put(template, each.path[len(_TEMPLATE) :], each.wanted)
    return template


def _kept(
    desired: Desired, manifests: Iterable[Manifest], there: Iterable[Json]
) -> Iterator[tuple[Manifest, Json, DesiredRevision]]:
    """Yield the Deployments that keep an unrecorded template: as rendered, as they are, and their revisions."""
    known = {each["metadata"]["name"]: each for each in there}
    by_name = {each.name: each for each in desired.revisions if not each.pod_templates}
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        live, revision = known.get(name), by_name.get(revision_of(name))
        if manifest["kind"] != "Deployment" or live is None or revision is None:
            continue
        if revision.has_served or live.get("status", {}).get("readyReplicas"):
            yield manifest, live, revision


def _put(template: Manifest, path: Path, value: object) -> None:
    """Set a field of a template, in place; elements of lists that it lacks are added."""
    place: Any = template
    for key, following in zip(path, (*path[1:], ""), strict=True):
        if key.startswith("k:"):
            identity = json.loads(key.removeprefix("k:"))
            found = next((each for each in place if all(each.get(k) == v for k, v in identity.items())), None)
            if found is None or not following:
                found = {**identity, **copy.deepcopy(value if isinstance(value, dict) and not following else {})}
                place[:] = [each for each in place if not all(each.get(k) == v for k, v in identity.items())]
                place.append(found)
            place = found
        elif following:
            place = place.setdefault(key.removeprefix("f:"), [] if following.startswith("k:") else {})
        else:
            place[key.removeprefix("f:")] = copy.deepcopy(value)
