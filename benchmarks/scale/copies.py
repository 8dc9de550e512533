"""Copies of a settled service: its rows under other names, on all clusters in turn. `api_server` copies its objects."""

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import Model

from clusters.models import Cluster
from deployments.models import InferenceService, Revision

_AT_ONCE = 500
Row = TypeVar("Row", bound=Model)


def copy_rows(name: str, names: Sequence[str]) -> None:
    """Insert copies of a service and its only revision; copy `n` is on the `n`-th cluster, and so on from the first."""
    service = InferenceService.objects.get(name=name)
    revision = Revision.objects.get(service=service)
    clusters = list(Cluster.objects.filter(name__startswith="cluster-").order_by("pk"))
    for first in range(0, len(names), _AT_ONCE):
        made = []
        for number, each in enumerate(names[first : first + _AT_ONCE], first):
            row = _renamed(service, name, each)
            row.cluster = clusters[number % len(clusters)]
            row.document = _on(row.document, row.cluster.name)
            made.append(row)
        InferenceService.objects.bulk_create(made)
        revisions = [_renamed(revision, name, each.name) for each in made]
        for own, each in zip(revisions, made, strict=True):
            own.service = each
        Revision.objects.bulk_create(revisions)


def _renamed(row: Row, old: str, new: str) -> Row:
    made = copy.copy(row)
    made._state = copy.copy(row._state)
    made._state.adding, made._state.fields_cache, made.pk = True, {}, None
    for field in row._meta.concrete_fields:
        value: Any = getattr(row, field.attname)
        if isinstance(value, str):
            setattr(made, field.attname, value.replace(old, new))
        elif isinstance(value, (dict, list)):
            setattr(made, field.attname, json.loads(json.dumps(value).replace(old, new)))
    return made


def _on(document: dict[str, Any], cluster: str) -> dict[str, Any]:
    return {**document, "spec": {**document["spec"], "cluster": cluster}}
