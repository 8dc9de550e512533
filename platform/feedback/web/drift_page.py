"""Page of drift: each feature with the shape of its reference and its present one."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import Conflict, NotFound
from common.http.error_pages import leave
from deployments import selectors
from feedback.domain.drift.watch import LEAST_ROWS
from feedback.selectors.drift import Shapes, drift_shapes
from feedback.services.drift import drift_accept

HEIGHT = 48
_BAR, _GAP = 12, 2
_PAGE = "deployments:drift"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bin's bar in both drawings; `words` has both shares."""

    x: int
    reference_y: float
    reference_height: float
    present_y: float
    present_height: float
    words: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A feature with its bars; both drawings have the same scale.

    Attributes:
        action: what makes the present its reference; empty where nothing does.
    """

    shapes: Shapes
    bars: list[Bar]
    width: int
    action: str


@never_cache
@require_safe
@page_scope(Scope.READ)
def drift_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show the features of a service's requests and answers, the strongest evidence of drift first."""
    service = selectors.service_get(namespace=namespace, name=name)
    drawn = [_drawn(each) for each in drift_shapes(namespace=namespace, name=name)]
    context = {
        "service": service,
        "is_kept": service.kept_percent > 0,
        "drifted": [each for each in drawn if each.shapes.state == "drifted"],
        "features": drawn,
        "height": HEIGHT,
        "may_write": may(page_token(request), Scope.WRITE, Place.namespace(namespace)),
    }
    return render(request, "feedback/drift.html", context)


@require_POST
@page_scope(Scope.WRITE)
def drift_accept_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Make the present the reference of a feature."""
    feature = request.POST.get("feature", "")
    try:
        drift_accept(
            namespace=namespace,
            name=name,
            features=[feature] if feature else [],
            actor=page_actor(request),
            now=timezone.now(),
        )
    except (Conflict, NotFound) as error:
        messages.error(request, error.message)
    return leave(request, _PAGE, namespace, name)


def _drawn(shapes: Shapes) -> Drawn:
    shares = [share for each in shapes.bins for share in (each.reference_percent, each.present_percent)]
    most = max((share for share in shares if share), default=1.0)

    def height(share: float | None) -> float:
        return round(HEIGHT * (share or 0.0) / most, 1)

    bars = []
    for number, each in enumerate(shapes.bins):
        reference, present = height(each.reference_percent), height(each.present_percent)
        words = f"{each.words}: {_percent(each.reference_percent)}, now {_percent(each.present_percent)}"
        x = number * (_BAR + _GAP)
        bars.append(Bar(x, HEIGHT - reference, reference, HEIGHT - present, present, words))
    can_end = shapes.state == "learning" and shapes.rows >= LEAST_ROWS
    action = "Accept" if shapes.state == "drifted" else "End learning" if can_end else ""
    return Drawn(shapes, bars, len(bars) * (_BAR + _GAP), action)


def _percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{share:.3g}\N{NO-BREAK SPACE}%"
