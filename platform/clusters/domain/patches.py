"""Patches of rendered Kubernetes manifests, in service files and cluster files. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.base import Patch

_VALUED = ("add", "replace", "test")
_FROM = ("move", "copy")
_MOST = 50


def parse_patches(document: Document, name: str = "patches") -> tuple[Patch, ...]:
    """Return the patches under `name`; raises InvalidInput with the dotted name of the field at fault."""
    if document.raw(name, None) is None:
        return ()
    entries = document.documents(name)
    if len(entries) > _MOST:
        raise InvalidInput(f"{document.path(name)} has {len(entries)} patches; expected {_MOST} at most")
    return document.each(name, lambda entry: _patch(entry, entry.prefix))


def patches_json(patches: Sequence[Patch]) -> list[dict[str, Any]]:
    """Return patches as a file has them."""
    return [
        {
            "target": {"kind": patch.kind} | ({"name": patch.object} if patch.object else {}),
            **({"json6902": [*map(dict, patch.operations)]} if patch.merge is None else {"merge": patch.merge}),
        }
        for patch in patches
    ]


def stored_patches(value: Sequence[object], where: str) -> tuple[Patch, ...]:
    """Return the patches that `patches_json` wrote, which were at `where`."""
    places = ((f"{where}[{number}]", each) for number, each in enumerate(value))
    return tuple(_patch(Document.of(each, place, place), place) for place, each in places)


def _patch(entry: Document, where: str) -> Patch:
    target = entry.document("target")
    kind, name = target.text("kind"), target.text("name", default="")
    operations, merge = entry.raw("json6902", None), entry.raw("merge", None)
    target.refuse_unknown()
    entry.refuse_unknown()
    if (operations is None) == (merge is None):
        raise InvalidInput(f"{where} has to say one of json6902 and merge", field=where)
    if merge is not None:
        Document.of(merge, f"{where}.merge", f"{where}.merge")
        return Patch(where, kind, name, merge=merge)
    if not isinstance(operations, list) or not operations:
        raise InvalidInput(f"{where}.json6902 is no list of operations", field=f"{where}.json6902")
    return Patch(where, kind, name, tuple(_operation(each, where, at) for at, each in enumerate(operations)))


def _operation(value: object, where: str, number: int) -> Mapping[str, Any]:
    field = f"{where}.json6902[{number}]"
    operation = Document.of(value, field, field)
    fields, verb = cast(Mapping[str, Any], value), operation.text("op")
    if verb not in (*_VALUED, *_FROM, "remove"):
        known = ", ".join((*_VALUED, *_FROM, "remove"))
        raise InvalidInput(f"{field}.op is {verb[:20]!r}; expected one of {known}", field=f"{field}.op")
    for name in ("path", *(["from"] if verb in _FROM else [])):
        if not operation.text(name).startswith("/"):
            raise InvalidInput(
                f"{field}.{name} is no JSON pointer into the object, such as /spec/x", field=f"{field}.{name}"
            )
    if verb in _VALUED:
        operation.raw("value", None)
        if "value" not in fields:
            raise InvalidInput(f"{field}.value is missing", field=f"{field}.value")
    operation.refuse_unknown()
    return fields
