"""Sums of usage by hour, as they are added to those of before."""

from collections.abc import Mapping

from django.db.models import F, Value
from django.db.models.functions import Greatest

from usage import hooks
from usage.domain.line import Group, Sums
from usage.models import HourlyUsage


def hours_add(sums: Mapping[Group, Sums]) -> None:
    """Add sums, in the caller's transaction; raises IntegrityError where another one adds a new hour meanwhile."""
    found = _accelerators({group.namespace for group in sums})
    for group, its in sorted(sums.items(), key=lambda each: str(each[0])):
        _add(group, its, found.get((group.namespace, group.revision), ""))


def _add(group: Group, sums: Sums, accelerator: str) -> None:
    named = {name: getattr(group, name) for name in Group.__slots__}
    counts = {name: getattr(sums, name) for name in Sums.__slots__ if name != "last_at"}
    added = HourlyUsage.objects.filter(**named).update(
        **{name: F(name) + count for name, count in counts.items()},
        last_at=Greatest(F("last_at"), Value(sums.last_at)),
    )
    if not added:
        HourlyUsage.objects.create(**named, **counts, accelerator=accelerator, last_at=sums.last_at)


def _accelerators(namespaces: set[str]) -> dict[tuple[str, str], str]:
    return {key: value for found in hooks.accelerators(sorted(namespaces)) for key, value in found.items()}
