"""`fairlead models`, `fairlead versions` and `fairlead alias`: the registry."""

import argparse
import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from fairlead_cli.client import Client, Json, path
from fairlead_cli.commands import imports, version_metadata
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError, EndedBadly
from fairlead_cli.files.upload_sources import Source, source_of
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_CHECK_EVERY_S = 0.3

VERSION_FACTS: render.Columns = {
    "model": "model",
    "version": "number",
    "status": "status",
    "reason": "reason",
    "platform": "platform",
    "inputs": lambda row: [render.tensor(spec) for spec in (row["signature"] or {}).get("inputs", [])],
    "outputs": lambda row: [render.tensor(spec) for spec in (row["signature"] or {}).get("outputs", [])],
    "size": lambda row: render.size(row["size_bytes"]),
    "memory": lambda row: render.size((row["profile"] or {}).get("memory_bytes")),
    "aliases": "aliases",
    "approval": lambda row: _approval(row),  # noqa: PLW0108 - it is written below
    "tags": lambda row: render.pairs(row.get("tags")),
    "description": lambda row: row.get("description"),
    "commit": lambda row: (row.get("lineage") or {}).get("source_commit"),
    "run": lambda row: (row.get("lineage") or {}).get("run_url"),
    "source": lambda row: (row.get("lineage") or {}).get("source_uri"),
    "built from": lambda row: (row.get("lineage") or {}).get("built_from"),
    "built on": lambda row: (row.get("lineage") or {}).get("accelerator"),
    "data": lambda row: (row.get("lineage") or {}).get("data_reference"),
    "parameters": lambda row: render.pairs((row.get("lineage") or {}).get("parameters")),
    "compatible with": lambda row: row.get("compatible_with"),
    "digest": "digest",
    "file": "source_name",
    "created": "created_at",
    "by": "created_by",
}


def push_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="PATH|URI",
        help="model file, such as model.onnx, or its folder in Triton's layout; or the URI from which "
        "the control plane fetches it: http(s)://, s3://, gs://, file://",
    )
    parser.add_argument("--name", required=True, help="name of the registered model; created if it is new")
    parser.add_argument(
        "--alias",
        type=_alias,
        help="alias to point to this version once it is READY, such as champion; waits for READY",
    )
    parser.add_argument("--sha256", metavar="HEX", help="SHA-256 of the one file at the URI; other content is refused")
    version_metadata.push_arguments(parser)
    parser.add_argument("--wait", action="store_true", help="waits until the version is READY; REJECTED exits with 3")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="maximum wait (300)")


def push(call: Call) -> None:
    """Registers a file or folder as the next version of a model; identical files return the existing version."""
    options = call.options
    is_waiting = options.wait or options.alias
    if imports.is_uri(options.file):
        row = imports.request(call)
        if not is_waiting:
            return call.show(row, imports.COLUMNS)
        number = imports.wait_imported(call, row, timeout_s=options.timeout)
    else:
        if options.sha256:
            raise CliError("--sha256 is for files at a URI; what is uploaded is always checked")
        version = _upload(call, source_of(Path(options.file)), options.name, version_metadata.query(options))
        number = version["number"]
    if is_waiting:
        version = wait_checked(call.client, options.name, number, timeout_s=options.timeout)
    if options.alias:
        call.client.put(path("models", options.name, "aliases", options.alias), {"version": number})
        version = call.client.get(path("models", options.name, "versions", number))
    return call.show(version, VERSION_FACTS)


def _alias(text: str) -> str:
    # The control plane's own rule (common.identifiers), checked before a file is sent in vain.
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,63}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no alias; expected 1 to 64 letters, digits, dots, underscores and hyphens, a letter first"
        )
    return text


def wait_checked(client: Client, model: str, number: int, *, timeout_s: float) -> Json:
    """Return the version once it is READY; EndedBadly with the reason when it was REJECTED."""
    version = wait_until(
        lambda: client.get(path("models", model, "versions", number)),
        lambda seen: seen["status"] != "PENDING",
        timeout_s=timeout_s,
        every_s=_CHECK_EVERY_S,
        what=f"the check of {model} version {number}",
    )
    if version["status"] != "READY":
        raise EndedBadly(f"{model} version {number} was rejected: {version['reason']}")
    return version


def _upload(call: Call, source: Source, model: str, query: list[tuple[str, str]]) -> Json:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(f"hashing {render.clean(source.filename)}", total=source.size_bytes)
        digest = hashlib.sha256()
        for piece in source.pieces():
            digest.update(piece)
            progress.advance(task, len(piece))
        progress.reset(task, description=f"uploading {render.clean(source.filename)}")
        address = path("models", model, "versions")
        return call.client.upload(
            address, source, digest.hexdigest(), lambda count: progress.advance(task, count), query
        )


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", metavar="TEXT", help="only models with this text in name or description")
    parser.add_argument("--tag", metavar="KEY=VALUE", help="only models with this tag")
    parser.add_argument("--alias", metavar="ALIAS", help="only models with this alias")
    parser.add_argument("--team", metavar="TEAM", help="only models owned by this team")
    parser.add_argument(
        "--platform", metavar="PLATFORM", help="only models with versions of this platform, such as onnxruntime_onnx"
    )


def list_models(call: Call) -> None:
    """Lists the registered models, all or those that match the options."""
    wanted = {name: getattr(call.options, name) for name in ("search", "tag", "alias", "team", "platform")}
    query = {name: value for name, value in wanted.items() if value is not None}
    columns: render.Columns = {
        "name": "name",
        "latest": "latest_version",
        "tags": lambda row: render.pairs(row.get("tags")),
        "description": "description",
        "created": "created_at",
    }
    call.show_list(call.client.all("models", filters=query), columns)


def name_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the registered model")


def show_model(call: Call) -> None:
    """Shows a model with its versions and aliases."""
    name = call.options.name
    model = call.client.get(path("models", name))
    versions = call.client.all(path("models", name, "versions"))
    if call.as_json:
        return call.show({**model, "versions": versions}, {})
    call.show(
        model,
        {
            "name": "name",
            "description": "description",
            "tags": lambda row: render.pairs(row.get("tags")),
            "compatible with": "compatible_with",
            "protected aliases": "protected_aliases",
            "requires approval": "requires_approval",
            "created": "created_at",
        },
    )
    columns: render.Columns = {
        "version": "number",
        "status": "status",
        "aliases": "aliases",
        "approval": "approval.state",
        "tags": lambda row: render.pairs(row.get("tags")),
        "size": lambda row: render.size(row["size_bytes"]),
        "created": "created_at",
        "reason": "reason",
    }
    print()
    return call.show_list(versions, columns)


def delete_model(call: Call) -> None:
    """Deletes a model that nothing serves, with all its versions."""
    call.client.delete(path("models", call.options.name))
    call.done(f"deleted model {call.options.name}", deleted=call.options.name)


def version_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("version", type=int, metavar="VERSION", help="number of the version")


def show_version(call: Call) -> None:
    """Shows one version: signature, profile, digest, aliases."""
    call.show(call.client.get(path("models", call.options.name, "versions", call.options.version)), VERSION_FACTS)


def recheck_arguments(parser: argparse.ArgumentParser) -> None:
    version_arguments(parser)
    parser.add_argument("--wait", action="store_true", help="waits until the version is READY; REJECTED exits with 3")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="maximum wait (300)")


def recheck_version(call: Call) -> None:
    """Checks a REJECTED version again, for example after the installation of a required library."""
    options = call.options
    version = call.client.post(path("models", options.name, "versions", options.version, "recheck"))
    if options.wait:
        version = wait_checked(call.client, options.name, options.version, timeout_s=options.timeout)
    call.show(version, VERSION_FACTS)


def delete_version(call: Call) -> None:
    """Deletes a version that nothing serves and no alias points to."""
    options = call.options
    call.client.delete(path("models", options.name, "versions", options.version))
    call.done(f"deleted {options.name} version {options.version}", deleted=options.version, model=options.name)


def _approval(version: Mapping[str, Any]) -> str:
    """Return what people decided of a version: `approved by ann: looks right`."""
    said = version.get("approval") or {}
    by = f" by {said['by']}" if said.get("by") else ""
    why = f": {said['comment']}" if said.get("comment") else ""
    return f"{said.get('state', '')}{by}{why}"


def alias_argument(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("alias", metavar="ALIAS", help="alias, such as champion")


def alias_arguments(parser: argparse.ArgumentParser) -> None:
    alias_argument(parser)
    parser.add_argument("version", type=int, metavar="VERSION", help="number of the version")


def set_alias(call: Call) -> None:
    """Points an alias to a version; services that follow the alias start a rollout."""
    options = call.options
    call.client.put(path("models", options.name, "aliases", options.alias), {"version": options.version})
    sentence = f"{options.name}@{options.alias} is version {options.version} now"
    call.done(sentence, model=options.name, alias=options.alias, version=options.version)


def delete_alias(call: Call) -> None:
    """Deletes an alias; the version remains."""
    options = call.options
    call.client.delete(path("models", options.name, "aliases", options.alias))
    call.done(f"deleted alias {options.name}@{options.alias}", deleted=options.alias, model=options.name)
