"""`fairlead storage`: disk use of model files, and garbage collection of those that no version has."""

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.output import render

_STORE: render.Columns = {
    "files of versions": lambda row: render.size(row["size_bytes"]),
    "files of no version": lambda row: render.size(row["unused_bytes"]),
    "can be collected": lambda row: render.size(row["collectable_bytes"]),
    "free on the disk": lambda row: f"{render.size(row['free_bytes'])} of {render.size(row['total_bytes'])}",
}
_MODELS: render.Columns = {
    "model": "name",
    "versions": "versions",
    "size": lambda row: render.size(row["size_bytes"]),
}
_UNNAMED: render.Columns = {
    "version nothing names": lambda row: f"{row['model']} {row['number']}",
    "size": lambda row: render.size(row["size_bytes"]),
    "status": "status",
    "registered": "created_at",
    "remembered by": "remembered_by",
}


def show(call: Call) -> None:
    """Shows the models that use most space, and the versions and artifacts that can be deleted."""
    found = call.client.get(path("storage"))
    if call.as_json:
        call.show(found, {})
        return
    if found["store"]:
        print(f"{render.facts(found['store'], _STORE)}\n")
    print(render.table(found["models"], _MODELS))
    if found["unnamed"]:
        print(f"\n{render.table(found['unnamed'], _UNNAMED)}")


def collect(call: Call) -> None:
    """Deletes artifacts without a version, except those stored within the last hour."""
    found = call.client.post(path("storage", "collect"))
    count = len(found["deleted"])
    call.done(f"deleted {count} artifact{'' if count == 1 else 's'}: {render.size(found['size_bytes'])}", **found)
