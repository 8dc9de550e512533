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
    parser.add_argument(
        "id", metavar="ID", type=int, help="id of the subscription, as `fairlead webhooks list` shows it"
    )


def list_webhooks(call: Call) -> None:
    """Lists the webhook subscriptions that you may manage."""
    call.show_list(call.client.all("webhooks"), _COLUMNS)


def show_webhook(call: Call) -> None:
    """Shows a webhook subscription with its last deliveries."""
    address = path("webhooks", call.options.id)
    webhook, deliveries = call.client.get(address), call.client.all(f"{address}/deliveries", 10)
    if call.as_json:
        return call.show({**webhook, "deliveries": deliveries}, {})
    call.show(webhook, {**_COLUMNS, "created": "created_at", "by": "created_by"})
    print()
    return call.show_list(deliveries, _DELIVERIES)


def create_arguments(parser: argparse.ArgumentParser) -> None:
    # `--url` is the control plane.
    parser.add_argument("address", metavar="URL", help="URL to post events to")
    parser.add_argument(
        "--event",
        action="append",
        required=True,
        metavar="EVENT",
        help="event type, such as RolloutHealthy; may be repeated",
    )
    parser.add_argument(
        "--team", help="team whose namespaces and models the subscription covers (the whole installation)"
    )
    parser.add_argument("--description", metavar="TEXT", help="purpose of the subscription")


def create(call: Call) -> None:
    """Creates a webhook subscription, and shows once the secret that signs its messages."""
    options = call.options
    body = {"url": options.address, "events": options.event, "team": options.team, "description": options.description}
    _show_secret(call, call.client.post("webhooks", {key: value for key, value in body.items() if value is not None}))


def edit_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument("--post-to", metavar="URL", help="new URL to post events to")
    parser.add_argument(
        "--event", action="append", metavar="EVENT", help="event types, in place of the present ones; may be repeated"
    )
    parser.add_argument("--description", metavar="TEXT", help="purpose of the subscription")
    switch = parser.add_mutually_exclusive_group()
    switch.add_argument("--enable", dest="enabled", action="store_true", default=None, help="resumes deliveries")
    switch.add_argument(
        "--disable", dest="enabled", action="store_false", default=None, help="stops deliveries; drops pending ones"
    )


def edit(call: Call) -> None:
    """Changes a webhook subscription; settings that are not named remain."""
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
    """Deletes a webhook subscription with its delivery log."""
    call.client.delete(path("webhooks", call.options.id))
    call.done(f"deleted webhook {call.options.id}", deleted=call.options.id)


def renew_secret(call: Call) -> None:
    """Replaces the secret that signs a webhook's messages, and shows the new one once."""
    _show_secret(call, call.client.post(path("webhooks", call.options.id, "secret")))


def test_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    _timeout_argument(parser)


def test(call: Call) -> None:
    """Posts the event Test and shows the answer: exits with 0 if it was accepted, else with 3."""
    _follow(call, call.client.post(path("webhooks", call.options.id, "test")))


def deliveries_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="number of newest deliveries (50)")


def list_deliveries(call: Call) -> None:
    """Lists past and pending deliveries of a webhook subscription, newest first."""
    address = path("webhooks", call.options.id, "deliveries")
    call.show_list(call.client.all(address, call.options.limit), _DELIVERIES)


def redeliver_arguments(parser: argparse.ArgumentParser) -> None:
    webhook_argument(parser)
    parser.add_argument(
        "delivery", metavar="DELIVERY", type=int, help="id of the delivery, as `fairlead webhooks deliveries` shows it"
    )
    _timeout_argument(parser)


def redeliver(call: Call) -> None:
    """Posts a delivery again and shows the answer: exits with 0 if it was accepted, else with 3."""
    address = path("webhooks", call.options.id, "deliveries", call.options.delivery, "redeliver")
    _follow(call, call.client.post(address))


def _timeout_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="maximum wait for the answer (30); then exit 4"
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
