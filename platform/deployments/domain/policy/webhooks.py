"""Step webhooks: external systems that confirm the start or end of a step, in the policy file. Pure.

The file has a system's address, never its secret: requests are signed with the secret of the webhook registered for
that address.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from common import durations
from common.errors import InvalidInput
from common.files.document import Document
from common.identifiers import check_dns_label

_MOST = 10
_LONGEST_TIMEOUT = timedelta(seconds=30)


class When(StrEnum):
    """When a webhook is called: before the step's weight, or after its hold and analysis."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class StepWebhook:
    """A webhook of a step.

    Attributes:
        url: its address without query; the registered webhook's may have one.
        timeout: of one request.
        deadline: from the first request; without a go or a no by then the step is undecided.
    """

    name: str
    url: str
    when: When = When.AFTER
    timeout: timedelta = timedelta(seconds=10)
    deadline: timedelta = timedelta(hours=1)


def parse_webhooks(step: Document) -> tuple[StepWebhook, ...]:
    """Return the `webhooks` of a step; raises InvalidInput."""
    if step.raw("webhooks", None) is None:
        return ()
    webhooks = step.each("webhooks", _webhook)
    names = [webhook.name for webhook in webhooks]
    if step.is_sound("webhooks") and (len(webhooks) > _MOST or len(set(names)) < len(names)):
        step.fault(
            "webhooks",
            f"has {len(webhooks)} webhooks named {', '.join(names)[:200]}; expected at most {_MOST}, each with a name "
            "of its own",
        )
    return webhooks


def _webhook(document: Document) -> StepWebhook:
    webhook = StepWebhook(
        name=document.text("name", check=check_dns_label),
        url=document.text("url", check=_check_url),
        when=document.choice("when", When, default=When.AFTER),
        timeout=document.duration("timeout", default=timedelta(seconds=10), positive=True),
        deadline=document.duration("deadline", default=timedelta(hours=1), positive=True),
    )
    if webhook.timeout > _LONGEST_TIMEOUT:
        document.fault(
            "timeout",
            f"is {durations.render(webhook.timeout)}; an answer that takes longer than "
            f"{durations.render(_LONGEST_TIMEOUT)} is better given as wait, and asked for again",
        )
    document.refuse_unknown(
        {"secret": "the secret is the one of the webhook that is registered for the address, never in a policy"}
    )
    return webhook


def _check_url(url: str, *, field: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or parts.query or parts.fragment or len(url) > 1000 or not url.isascii() or not url.isprintable():
        raise InvalidInput(
            f"{field} is {url[:80]!r}; expected http:// or https:// with a host, without user, query or fragment: "
            "what is secret in an address belongs to the registered webhook",
            field=field,
        )
    return url


def webhook_json(webhook: StepWebhook) -> dict[str, object]:
    """Return a webhook as the file has it."""
    return {
        "name": webhook.name,
        "url": webhook.url,
        "when": webhook.when.value,
        "timeout": durations.render(webhook.timeout),
        "deadline": durations.render(webhook.deadline),
    }
