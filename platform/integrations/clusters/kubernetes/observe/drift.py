"""Drift detection: what others changed since the last apply, and how it is resolved. Pure.

The digest of the last applied manifest is an annotation of the object, its seal. A difference from a manifest is
- ours to write, where the seal differs (the desired state is new) and no other manager owns the field;
- drift, where another manager owns the field, or under the same seal no manager does: it was changed, or removed;
- nothing, where we own it: the value is then what the API server made of what we applied.

Drift is resolved in one place, here:
- a field of a manager that the operator allowed (`Options.allowed_managers`) is left out of what is applied, and is no
  drift;
- `heal` applies the object with force, so that its fields are ours again;
- `keep` leaves the fields out of what is applied, and applies all others;
- an object that never was ours is never forced: the conflict is reported.
Fields that others added beside ours are no drift.
"""

import copy
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.clusters.base import Drift
from integrations.clusters.kubernetes.manifests.names import APPLIED, Manifest
from integrations.clusters.kubernetes.observe.field_ownership import Owner, Ownership, Path, element, shown

FIELD_MANAGER = "fairlead"
WAKER = "fairlead-waker"
"""Manager of the number of replicas that a request raised from zero, until the driver has it from the reconciler."""
_REPLICAS: Path = ("f:spec", "f:replicas")
_AUTOSCALERS = "kube-controller-manager"
_LONGEST_VALUE = 200
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs from the desired state, with its owner.

    Attributes:
        path: of the field, or of the list that is one value and has the difference in it.
        inside: where in such a list, as text.
    """

    path: Path
    wanted: object
    found: object
    owner: Owner
    inside: str = ""

    def of(self, manifest: Manifest, *, healed: bool) -> Drift:
        """Return it as the driver reports it."""
        place = shown(self.path) + self.inside
        values = (_short(self.wanted), _short(self.found))
        return Drift(name_of(manifest), place, *values, self.owner.manager, self.owner.at, healed)


def name_of(manifest: _Json) -> str:
    """Return an object's kind and name."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def sealed(manifest: Manifest) -> Manifest:
    """Return the manifest with its own digest as an annotation."""
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:32]
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def has_seal(manifest: Manifest, live: _Json) -> bool:
    """Return whether this manifest is the one applied last."""
    return bool(_seal(manifest) == _seal(live))


def differences(manifest: Manifest, live: _Json) -> list[Difference]:
    """Return the differences that others made to a sealed manifest."""
    ownership, is_same = Ownership(live), has_seal(manifest, live)
    found = []
    for path, wanted, value in _walk(manifest, live, ownership, ()):
        if ownership.is_owned_by([FIELD_MANAGER], path):
            continue
        owner = max(ownership.owners(path), key=lambda each: each.at or 0.0, default=Owner(""))
        if is_same or owner.manager:
            found.append(_difference(path, wanted, value, owner))
    return found


def ceded(manifest: Manifest, live: _Json, allowed: Collection[str]) -> Manifest:
    """Return the manifest without the fields that the allowed managers own alone."""
    if not allowed:
        return manifest
    ownership = Ownership(live)
    return without(
        manifest,
        [
            path
            for path, _, _ in _walk(manifest, live, ownership, ())
            if ownership.is_owned_by(allowed, path) and not ownership.is_owned_by([FIELD_MANAGER], path)
        ],
    )


def replicas_owners(deployment: _Json) -> list[Owner]:
    """Return the managers that set a Deployment's number of replicas; empty where it is the default."""
    return list(Ownership(deployment).owners(_REPLICAS))


def scaled_by_hand(deployment: _Json, replicas: int) -> Difference | None:
    """Return the difference of a Deployment's number of replicas; None where no one set it by hand.

    An autoscaler's number is no difference here: it writes as the controller manager does. Nor is the waker's.
    """
    hands = [each for each in replicas_owners(deployment) if each.manager not in (FIELD_MANAGER, _AUTOSCALERS, WAKER)]
    if not hands:
        return None
    owner = max(hands, key=lambda each: each.at or 0.0)
    return Difference(_REPLICAS, replicas, deployment["spec"]["replicas"], owner)


def is_woken(deployment: _Json) -> bool:
    """Return whether a request raised a Deployment's number of replicas from zero, and the driver set none since."""
    managers = {each.manager for each in replicas_owners(deployment)}
    return WAKER in managers and FIELD_MANAGER not in managers  # both, once the driver has set the same number


def without(manifest: Manifest, paths: Iterable[Path]) -> Manifest:
    """Return a copy of the manifest without the fields at `paths`."""
    left = copy.deepcopy(manifest)
    for path in paths:
        *above, last = path
        place: Any = left
        for key in above:
            place = _step(place, key)
        if last.startswith("k:"):
            place.remove(_step(place, last))
        else:
            del place[last.removeprefix("f:")]
    return left


def _walk(wanted: object, live: object, ownership: Ownership, path: Path) -> Iterator[tuple[Path, object, object]]:
    """Yield path, wanted and found value of each difference; defaults and fields of others do not count."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        for key, value in wanted.items():
            yield from _walk(value, live.get(key), ownership, (*path, f"f:{key}"))
    elif _is_list(wanted) and _is_list(live) and (identity := ownership.identity(path)):
        elements = {element(identity, each): each for each in live}  # type: ignore[attr-defined]
        for each in wanted:  # type: ignore[attr-defined]
            key = element(identity, each)
            yield from _walk(each, elements.get(key), ownership, (*path, key))
    elif not _has(live, wanted) or _was_rewritten(wanted, ownership, path):
        yield path, wanted, live


def _was_rewritten(wanted: object, ownership: Ownership, path: Path) -> bool:
    """Return whether another manager wrote a list that is one value; it may have added to its elements."""
    return (
        _is_list(wanted)
        and bool(wanted)
        and not ownership.is_owned_by([FIELD_MANAGER], path)
        and any(ownership.owners(path))
    )


def _has(live: object, wanted: object) -> bool:
    """Return whether `live` has all values of `wanted`; Kubernetes adds defaults, but no list elements."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(_has(live.get(key), value) for key, value in wanted.items())
    if _is_list(wanted) and wanted:
        if not _is_list(live) or len(live) != len(wanted):  # type: ignore[arg-type]
            return False
        return all(_has(one, other) for one, other in zip(live, wanted, strict=True))  # type: ignore[call-overload]
    return live == wanted or (live is None and not wanted)  # an empty value is left out when it is stored


def _difference(path: Path, wanted: object, found: object, owner: Owner) -> Difference:
    """Return a difference with its place in a list that is one value, where that can be determined."""
    inside = ""
    while True:
        if _is_list(wanted) and _is_list(found) and len(wanted) == len(found):  # type: ignore[arg-type]
            pairs = enumerate(zip(wanted, found, strict=True))  # type: ignore[call-overload]
            at = [(f"[{number}]", one, other) for number, (one, other) in pairs if not _has(other, one)]
        elif inside and isinstance(wanted, Mapping) and isinstance(found, Mapping):
            at = [(f".{key}", one, found.get(key)) for key, one in wanted.items() if not _has(found.get(key), one)]
        else:
            at = []
        if len(at) != 1:
            return Difference(path, wanted, found, owner, inside)
        place, wanted, found = at[0]
        inside += place


def _step(place: Any, key: str) -> Any:
    if not key.startswith("k:"):
        return place[key.removeprefix("f:")]
    identity = json.loads(key.removeprefix("k:"))
    return next(each for each in place if all(each.get(name) == value for name, value in identity.items()))


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _seal(live: _Json) -> object:
    return (live["metadata"].get("annotations") or {}).get(APPLIED)


def _short(value: object) -> str:
    text = "" if value is None else json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
