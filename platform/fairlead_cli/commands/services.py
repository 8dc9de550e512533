"""`fairlead services` and `fairlead events`: served models and their events."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.commands import failures, rollouts
from fairlead_cli.commands.refusals import Refusals
from fairlead_cli.commands.rollout_view import share, wait_text
from fairlead_cli.context import Call, count, service_path
from fairlead_cli.errors import Aborted, CliError, EndedBadly, NotFound
from fairlead_cli.files.apply_file import apply_file, file_arguments
from fairlead_cli.output import contract_changes, render
from fairlead_cli.output.waiting import wait_until


def _weight(revision: Mapping[str, Any]) -> str:
    """Return a revision's share of requests, for a shadow also that of copies."""
    weight, copies = render.percent(revision["weight_actual"]), revision.get("mirror_actual", 0)
    return f"{weight} + copies of {render.percent(copies)}" if copies else weight


_COLUMNS: render.Columns = {
    "namespace": "namespace",
    "name": "name",
    "phase": "phase",
    "model": "model",
    "version": "model_version",
    "rollout": lambda row: _rollout(row.get("rollout")),
    "reason": "reason",
}


def _exact_percent(value: float | None) -> str:
    """Return a percentage with all its digits: one decimal would make 100 of 99.95."""
    return "-" if value is None else f"{value:.10g} %"


def _names(value: object) -> str:
    """Return a policy or limits in a line: `authenticated`, `teams fraud, risk`, `requestsPerSecond 5`."""
    if not isinstance(value, Mapping):
        return str(value or "-")
    parts = (each if isinstance(each, list) else [_names(each)] for each in value.values())
    return "; ".join(f"{name} {', '.join(map(str, part))}" for name, part in zip(value, parts, strict=True)) or "-"


def _live(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the live revision of a service; empty without one."""
    found = (each for each in row.get("revisions", ()) if each["name"] == row.get("stable_revision"))
    return next(found, {})


def _pool(row: Mapping[str, Any]) -> str:
    """Return the pool whose replicas serve the live revision; a dash where it has its own."""
    return _live(row).get("pool") or "-"


def _saved(row: Mapping[str, Any]) -> str:
    """Return what scaling the live revision to zero saved; a dash where it never slept."""
    live = _live(row)
    if not live.get("asleep_hours"):
        return "-"
    cost = live.get("asleep_saved")
    priced = "" if cost is None else f", {cost:.4g} {live.get('currency', '')}"
    return f"{live['asleep_hours']:.2f} replica hours{priced}"


def _image(row: Mapping[str, Any]) -> str:
    """Return the image and protocol of the live custom predictor; a dash for a model."""
    live = _live(row)
    return f"{live['image']}, protocol {live['protocol']}" if live.get("image") else "-"


_FACTS: render.Columns = {
    **_COLUMNS,
    "image": _image,
    "model pool": _pool,
    "saved by sleep": _saved,
    "policy": "policy",
    "access": lambda row: _names(row.get("access")),
    "limits": lambda row: _names(row.get("limits")),
    "objectives": lambda row: _names(row.get("objectives")),
    "url": "url",
    "leaving": lambda row: ", ".join(row.get("leaving_urls", ())) or "-",
    "preview": "preview_url",
    "follows": lambda row: row.get("follows") or "-",
    "created": "created_at",
}
_REVISIONS: render.Columns = {
    "revision": "name",
    "version": "model_version",
    "role": "role",
    "ready": lambda row: "asleep" if row.get("asleep_since") else f"{row['replicas_ready']}/{row['replicas_wanted']}",
    "load": lambda row: row.get("scaling") or "-",
    "weight": _weight,
    "wanted": lambda row: render.percent(row["weight_wanted"]),
    "restarts": "restarts",
}
_BUDGETS: render.Columns = {
    "objective": "objective",
    "target": lambda row: _exact_percent(row["target_percent"]),
    "measured": lambda row: _exact_percent(row["measured_percent"]),
    "missed": lambda row: f"{row['failures']}/{row['requests']}",
    "burn rate": lambda row: "-" if row["burn_rate"] is None else f"{row['burn_rate']:.3g}",
    "budget left": lambda row: render.percent(row["left_percent"]),
}
_EVENTS: render.Columns = {
    "seq": "seq",
    "at": "at",
    "kind": "kind",
    "revision": "revision",
    "request": "request_id",
    "message": "message",
}
_CLUSTER_EVENTS: render.Columns = {"cluster": "cluster", "seq": "seq", "at": "at", "kind": "kind", "message": "message"}

_LOOK_EVERY_S = 0.5


def service_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="NAME or NAMESPACE/NAME")


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--search", metavar="WORDS", help="only services with each of these words in name, namespace or model"
    )


def list_services(call: Call) -> None:
    """Lists the services, all or those that a search finds."""
    words = call.options.search
    call.show_list(call.client.all("services", filters={"search": words} if words else None), _COLUMNS)


def show_service(call: Call) -> None:
    """Shows one service with its revisions."""
    service = call.client.get(path("services", *service_path(call.options.service)))
    call.show(service, _FACTS)
    if not call.as_json:
        print()
        if service.get("waits"):
            print(f"{wait_text(service['waits'])}\n")
        call.show_list(service["revisions"], _REVISIONS)
        if service.get("objectives"):
            _show_budgets(call, service)
        for revision in service["revisions"]:
            if revision.get("placement"):
                print(f"\n{_placement_text(revision)}")
            if revision.get("template_changes"):
                print(f"\n{_template_text(revision)}")
        for revision in failures.failing(service):
            print(f"\n{failures.as_text(revision)}")


def _show_budgets(call: Call, service: Mapping[str, Any]) -> None:
    """Show the error budgets of a service; nothing where the control plane is older than they are."""
    with suppress(NotFound):
        found = call.client.get(path("services", service["namespace"], service["name"], "objectives"))
        print()
        call.show_list(found["budgets"], _BUDGETS)
        print(f"\nsince {found['since'] or '-'}, of a window of {found['window_days']} days")


def _template_text(revision: Mapping[str, Any]) -> str:
    """Return how a revision's pinned pod template differs from that of a new one."""
    changes = revision["template_changes"]
    return render.clean(f"{revision['name']} keeps its pod template; a new revision gets: {changes}")


def _placement_text(revision: Mapping[str, Any]) -> str:
    """Return which GPU or slice a revision's replicas get, and why."""
    placement = revision["placement"]
    held = f", on nodes with {' or '.join(placement['products'])}" if placement["products"] else ""
    why = f": {placement['why']}" if placement["why"] else ""
    return render.clean(f"{revision['name']} on {placement['resource']}{held}{why}")


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    _turned_arguments(parser, "waits until the last replica has ended")


def stop_service(call: Call) -> None:
    """Stops a service: nothing of it runs; its file, revisions and history remain."""
    _turned(call, "stop", _is_stopped)


def resume_arguments(parser: argparse.ArgumentParser) -> None:
    _turned_arguments(parser, "waits until the service is Ready")


def resume_service(call: Call) -> None:
    """Resumes a stopped service."""
    _turned(call, "resume", lambda seen: seen["phase"] == "Ready", Refusals())


def _turned_arguments(parser: argparse.ArgumentParser, wait: str) -> None:
    service_argument(parser)
    parser.add_argument("--wait", action="store_true", help=wait)
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600); then exit 4"
    )


def _turned(call: Call, verb: str, is_done: Callable[[Json], bool], refusals: Refusals | None = None) -> None:
    where = path("services", *service_path(call.options.service))
    service = call.client.post(f"{where}/{verb}")
    if call.options.wait:
        what = f"{verb} of service {service['namespace']}/{service['name']}"
        with failures.shown_at_a_bad_end(call, service["namespace"], service["name"]):
            service = _watched(call, where, is_done, what, refusals)
    call.show(service, _FACTS)


def delete_service(call: Call) -> None:
    """Stops and deletes a service."""
    namespace, name = service_path(call.options.service)
    call.client.delete(path("services", namespace, name))
    call.done(f"deleting service {namespace}/{name}", deleting=f"{namespace}/{name}")


def apply_arguments(parser: argparse.ArgumentParser) -> None:
    file_arguments(parser)
    contract_changes.force_argument(parser)
    parser.add_argument(
        "--wait",
        action="store_true",
        help="waits until the service is Ready or its rollout ends: exit 0 if the state in the file is "
        "live, 3 or 6 if its rollout was Degraded or Aborted, also earlier",
    )
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="maximum wait (3600); then exit 4"
    )


def apply_service(call: Call) -> None:
    """Creates or changes services; prints the differences first. Changes that can alter answers start a rollout."""
    ready = (lambda service: _ready(call, service)) if call.options.wait else (lambda service: service)
    with contract_changes.naming_the_flag():
        apply_file(
            call, partial(_where, call), _FACTS, ready, query=contract_changes.as_query(call.options.force_contract)
        )


def _where(call: Call, document: Json) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        raise CliError(f"{call.options.file} names no service; expected a field `metadata.name`")
    return path("services", metadata.get("namespace") or "default", name)


def _ready(call: Call, service: Json) -> Json:
    """Return the service once it is Ready and the rollout that is in progress ended Healthy."""
    with failures.shown_at_a_bad_end(call, service["namespace"], service["name"]):
        return _waited_for(call, service)


def _waited_for(call: Call, service: Json) -> Json:
    where = path("services", service["namespace"], service["name"])
    if service.get("import_state"):
        service = _imported(call, where)
    if service["rollout"] is not None and not rollouts.is_over(service["rollout"]):
        rollouts.require_healthy(rollouts.wait(call, service["rollout"]))
    what = f"service {service['namespace']}/{service['name']} as Ready"
    refusals = Refusals(count_loads=True)
    ready = _watched(call, where, lambda seen: seen["phase"] == "Ready" or _is_stopped(seen), what, refusals)
    if not _is_stopped(ready):
        _require_live(ready)
    return ready


def _is_stopped(service: Json) -> bool:
    """Return whether nothing runs, as the file says."""
    return bool(service["phase"] == "Stopped" and not service.get("waits"))


def _watched(
    call: Call, where: str, is_done: Callable[[Json], bool], what: str, refusals: Refusals | None = None
) -> Json:
    """Return the service once it is so, and print meanwhile what changes; EndedBadly where it is refused for good."""
    reported: list[str] = []

    def look() -> Json:
        seen = call.client.get(where)
        if reported[-1:] != [seen["reason"]]:
            reported.append(seen["reason"])
            call.note(f"{seen['phase']}: {seen['reason']}")
        if refusals is not None and not is_done(seen):
            refusals.check(seen)
        return seen

    return wait_until(look, is_done, timeout_s=call.options.timeout, every_s=_LOOK_EVERY_S, what=what)


def _require_live(service: Json) -> None:
    """Raise Aborted or EndedBadly where something else than the file is live, unless its rollout was to end so."""
    file, rollout = service["file"], service["rollout"] or {}
    if file["is_live"] or (rollout.get("phase") == "Healthy" and rollout.get("then") == "end"):
        return
    error = Aborted if rollout.get("phase") == "Aborted" else EndedBadly
    raise error(f"service {service['namespace']}/{service['name']}: {file['message']}")


def _imported(call: Call, where: str) -> Json:
    """Return the service once the files that its file names came in; EndedBadly with the reason where they did not."""
    reported: list[str] = []

    def look() -> Json:
        seen = call.client.get(where)
        awaited = seen["import_state"]
        if awaited and awaited["ended_badly"]:
            raise EndedBadly(awaited["note"])
        if awaited and reported[-1:] != [awaited["note"]]:
            reported.append(awaited["note"])
            call.note(awaited["note"])
        return seen

    return wait_until(
        look,
        lambda seen: not seen["import_state"],
        timeout_s=call.options.timeout,
        every_s=_LOOK_EVERY_S,
        what=f"the import for {where}",
    )


def events_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "service", metavar="SERVICE", nargs="?", help="NAME or NAMESPACE/NAME (the platform's own components)"
    )
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="number of newest events (50)")


def events(call: Call) -> None:
    """Lists events of a service or of the platform's own components, oldest first."""
    if call.options.service is not None:
        found = call.client.all(path("services", *service_path(call.options.service), "events"), call.options.limit)
        return call.show_list(found[::-1], _EVENTS)
    clusters = [cluster["name"] for cluster in call.client.all("clusters")]
    found = [
        {"cluster": name, **event}
        for name in clusters
        for event in call.client.all(path("clusters", name, "events"), call.options.limit)
    ]
    newest = sorted(found, key=lambda event: (str(event["at"]), event["cluster"], event["seq"]))[-call.options.limit :]
    return call.show_list(newest, _CLUSTER_EVENTS)


def _rollout(rollout: dict[str, Any] | None) -> str:
    if rollout is None:
        return "-"
    return f"{rollout['phase']} {rollout['from_version']} -> {rollout['to_version']}, {share(rollout)}"
