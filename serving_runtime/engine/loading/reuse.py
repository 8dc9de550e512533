"""Reuse of loaded versions by a reload. Pure."""

from dataclasses import dataclass
from typing import Any

from serving_runtime.engine.catalog.repository import marks_by_version
from serving_runtime.engine.loading.load_model import LoadPlan


@dataclass(frozen=True, slots=True)
class Reuse:
    """Reusable versions of the loaded model.

    Attributes:
        kept: unchanged; they go on serving.
        reconfigured: only counts of instance groups or the version policy have changed; their files stay open.
    """

    kept: frozenset[int] = frozenset()
    reconfigured: frozenset[int] = frozenset()


def reusable(old: LoadPlan | None, new: LoadPlan) -> Reuse:
    """Return which versions of `old` can serve on under `new`."""
    if old is None or old.folder.root is None or old.folder.root is not new.folder.root:
        return Reuse()
    old_common, old_versions = marks_by_version(old.folder.marks)
    new_common, new_versions = marks_by_version(new.folder.marks)
    if old_common != new_common:
        return Reuse()
    common = set(old.versions) & set(new.versions)
    same = frozenset(version for version in common if old_versions.get(version) == new_versions.get(version))
    if old.written == new.written:
        return Reuse(kept=same)
    if _essence(old.written) == _essence(new.written):
        return Reuse(reconfigured=same)
    return Reuse()


def _essence(written: Any) -> Any:
    """Return the config without the fields that do not affect how a version's file is opened."""
    copy = type(written)()
    copy.CopyFrom(written)
    copy.ClearField("version_policy")
    for group in copy.instance_group:
        group.ClearField("count")
    return copy
