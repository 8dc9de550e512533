"""Template filters for numbers and messages: formatting only, and what depends on the viewer."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django import template
from django.urls import reverse

from accounts.domain.approver import Approver
from common import durations
from common.db import count as counting
from deployments.domain.analysis.verdict import Measurement
from deployments.domain.comparison.agreement import shown_percent
from deployments.views.approvals import ApprovalsView
from deployments.views.shapes import AnalysisRunView, RolloutView
from deployments.web import presentation
from deployments.web.try_page import Field

register = template.Library()

NO_BREAK = "\u00a0"
_SHORT_ID = 20
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _short(value: float) -> str:
    """Return at most three significant digits: `0.04`, `0.00031`, `24.7`, `1,204`."""
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    digits = 0 if value == int(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@register.filter
def count(value: int) -> str:
    """Return `1,204` for 1204."""
    return f"{value:,}"


@register.filter
def counted(value: int) -> str:
    """Return `1,000+` for more than a thousand rows, where counting ends."""
    return counting.counted(value)


@register.filter
def percent(value: float) -> str:
    """Return `24.7 %` for 24.71, with a space that does not break."""
    return f"{_short(value)}{NO_BREAK}%"


@register.filter
def per_second(value: float) -> str:
    """Return a rate as `12.4/s`."""
    return f"{_short(value)}/s"


@register.filter
def precise(value: float) -> str:
    """Return `99.98 %` for 99.987: two digits, and 100 for all only."""
    return f"{shown_percent(value)}{NO_BREAK}%"


@register.filter
def plain(value: float) -> str:
    """Return a number of a file as people write it: `99` for 99.0, `99.95`."""
    return f"{value:.10g}"


@register.filter
def times(value: float) -> str:
    """Return `3.2 times`, with a space that does not break."""
    return f"{_short(value)}{NO_BREAK}times"


@register.filter
def difference(value: float | None) -> str:
    """Return a difference to three digits, `1.2e-05`; one without a size as text."""
    return "not a number" if value is None else f"{value:.3g}"


@register.filter
def measured(value: float | None, unit: str) -> str:
    """Return a measured value with its unit; a dash without one."""
    if value is None:
        return "\N{EN DASH}"
    if unit in {"percent", "percentage points"}:
        return percent(value)
    return f"{_short(value)}{NO_BREAK}{unit}" if unit else _short(value)


@register.filter
def limit(value: float | None, unit: str) -> str:
    """Return a measurement's limit; one in percentage points is the canary's allowance above stable."""
    return f"+{measured(value, unit)}" if unit == "percentage points" else measured(value, unit)


@register.filter
def about(run: AnalysisRunView, rollout: RolloutView) -> str:
    """Return the subject of an analysis run, after `Analysis`."""
    return presentation.about_of(run, rollout)


@register.filter
def duration(seconds: float) -> str:
    """Return `1m30s` for 90."""
    return durations.render(timedelta(seconds=round(seconds, 3)))


@register.filter
def sentence(message: str) -> str:
    """Return the message with a capital first, unless it begins with a name such as `digits-00002`."""
    return message[:1].upper() + message[1:] if message.partition(" ")[0].rstrip(":,;").isalpha() else message


@register.filter
def words(name: str) -> str:
    """Return `Analysis running` for `AnalysisRunning`, `Error rate` for `error_rate`, `Quality: a` for `quality:a`."""
    text = _WORD_START.sub(" ", name).replace("_", " ").replace(":", ": ").lower()
    return text[:1].upper() + text[1:]


@register.filter
def outcome(verdict: str, ended: object) -> str:
    """Return a verdict as shown; an analysis that ended undecided no longer runs."""
    return "Undecided" if ended and verdict == "Running" else verdict


@register.filter
def decides(measurement: Measurement, ended: object) -> str:
    """Return what would decide a measurement."""
    return presentation.decides(measurement, ended)


@register.filter
def refusal_for(approvals: ApprovalsView, viewer: Approver) -> str:
    """Return why a user whose role allows it may not approve; empty where he may."""
    return approvals.refusal(viewer)


@register.filter
def token_refusal_for(approvals: ApprovalsView, viewer: Approver) -> str:
    """Return why the viewer's token neither approves nor rejects; empty where it may."""
    return approvals.token_refusal(viewer)


@register.filter
def has_of(approvals: ApprovalsView, viewer: Approver) -> bool:
    """Return whether an approval of the user counts now."""
    return approvals.has_of(viewer.username)


@register.filter
def service_url(service: str) -> str:
    """Return the address of the page of a service, NAMESPACE/NAME."""
    return reverse("deployments:service-detail", args=service.split("/", 1))


@register.filter
def short_id(request_id: str) -> str:
    """Return the beginning of a long request id, enough to find it in a log; a short one is a caller's own."""
    return request_id if len(request_id) <= _SHORT_ID else f"{request_id[:8]}\N{HORIZONTAL ELLIPSIS}"


@register.filter
def dims(shape: Sequence[int]) -> str:
    """Return `[-1, 4]`."""
    return str(list(shape))


@register.filter
def value_of(field: Field, said: Mapping[str, str]) -> str:
    """Return the JSON of an input of a tried model: what was entered, else its example."""
    return said.get(f"data-{field.index}", field.example)
