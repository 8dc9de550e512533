"""`fairlead webhooks`: webhook subscriptions."""

import argparse

from fairlead_cli.client import Json, path
from fairlead_cli.context import Call, count
from fairlead_cli.errors import EndedBadly
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_COLUMNS: render.Columns = {
    "id": "id",
    "team": lambda row: row["team"] or "whole installation",
    "url": "url",
    "enabled": "enabled",
    "events": "events",
    "description": "description",
}
_DELIVERIES: render.Columns = {
    "id": "id",
    "event": "event",
    "status": "status",
    "tries": "tries",
    "answer": lambda row: f"{row['answer_status'] or ''} {row['answer']}".strip(),
    "created": "created_at",
    "finished": "finished_at",
}
_LOOK_EVERY_S = 0.3


def webhook_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=int, help="the webhook's id, as `fairlead webhooks list` shows it")


def list_webhooks(call: Call) -> None:
    """List the webhooks that you may manage."""
    call.show_list(call.client.all("webhooks"), _COLUMNS)


def show_webhook(call: Call) -> None:
    """Show a webhook with its last deliveries."""
    address = path("webhooks", call.options.id)
    webhook, deliveries = call.client.get(address), call.client.all(f"{address}/deliveries", 10)
    if call.as_json:
        return call.show({**webhook, "deliveries": deliveries}, {})
    call.show(webhook, {**_COLUMNS, "created": "created_at", "by": "created_by"})
    print()
    return call.show_list(deliveries, _DELIVERIES)


def create_arguments(parser: argparse.ArgumentParser) -> None:
    # `--url` is the control plane.
    parser.add_argument("address", metavar="URL", help="where to post")
    parser.add_argument(
        "--event", action="append", required=True, metavar="EVENT", help="such as RolloutHealthy; may be repeated"
    )
    parser.add_argument("--team", help="whose namespaces and models it is told of (all of the installation's)")
    parser.add_argument("--description", metavar="TEXT", help="what it is for")


def create(call: Call) -> None:
    """Make a webhook; the secret that signs its messages is shown once."""
    options = call.options
    body = {"url": options.address, "events": options.event, "team": options.team, "description": options.description}
    _show_secret(call, call.client.post("webhooks", {key: value for key, value in body.items() if value is not None}))


def edit_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument("--post-to", metavar="URL", help="another address")
    parser.add_argument("--event", action="append", metavar="EVENT", help="all the events it wants; may be repeated")
    parser.add_argument("--description", metavar="TEXT", help="what it is for")
    switch = parser.add_mutually_exclusive_group()
    switch.add_argument("--enable", dest="enabled", action="store_true", default=None, help="tell it again")
    switch.add_argument(
        "--disable", dest="enabled", action="store_false", default=None, help="tell it no more; what waits is given up"
    )


def edit(call: Call) -> None:
    """Change a webhook; what is not named stays."""
    options = call.options
    body = {
        "url": options.post_to,
        "events": options.event,
        "description": options.description,
        "enabled": options.enabled,
    }
    named = {key: value for key, value in body.items() if value is not None}
    call.show(call.client.patch(path("webhooks", options.id), named), _COLUMNS)


def delete(call: Call) -> None:
    """Delete a webhook with its log."""
    call.client.delete(path("webhooks", call.options.id))
    call.done(f"deleted webhook {call.options.id}", deleted=call.options.id)


def renew_secret(call: Call) -> None:
    """Replace the secret that signs a webhook's messages; the new one is shown once."""
    _show_secret(call, call.client.post(path("webhooks", call.options.id, "secret")))


def test_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    _timeout_argument(parser)


def test(call: Call) -> None:
    """Post the event Test and show the answer: exit 0 when it was taken, 3 when not."""
    _follow(call, call.client.post(path("webhooks", call.options.id, "test")))


def deliveries_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="how many of the newest (50)")


def list_deliveries(call: Call) -> None:
    """List what a webhook was and will be told, newest first."""
    address = path("webhooks", call.options.id, "deliveries")
    call.show_list(call.client.all(address, call.options.limit), _DELIVERIES)


def redeliver_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument("delivery", metavar="DELIVERY", type=int, help="its id in `fairlead webhooks deliveries`")
    _timeout_argument(parser)


def redeliver(call: Call) -> None:
    """Post what was posted once more and show the answer: exit 0 when it was taken, 3 when not."""
    address = path("webhooks", call.options.id, "deliveries", call.options.delivery, "redeliver")
    _follow(call, call.client.post(address))


def _timeout_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="longest wait for the answer (30); then exit 4"
    )


def _follow(call: Call, delivery: Json) -> None:
    """Show the delivery once its first try ended; EndedBadly unless it was taken."""
    address = path("webhooks", call.options.id, "deliveries", delivery["id"])
    ended = wait_until(
        lambda: call.client.get(address),
        lambda seen: seen["status"] != "PENDING" or seen["answer_status"] is not None or bool(seen["answer"]),
        timeout_s=call.options.timeout,
        every_s=_LOOK_EVERY_S,
        what=f"the answer to delivery {delivery['id']}",
    )
    call.show(ended, _DELIVERIES)
    if ended["status"] != "DELIVERED":
        answered = f" answered {ended['answer_status']}" if ended["answer_status"] else ""
        raise EndedBadly(f"webhook {call.options.id}{answered}: {ended['answer'] or 'nothing more was said'}")


def _show_secret(call: Call, webhook: Json) -> None:
    call.show(webhook, {"secret": "secret", **_COLUMNS})
    call.note("this is the only time that the secret is shown; its receiver needs it to check what is posted")
