"""The home page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.access import Place
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.scopes import Scope
from console.web.home_page import home_page
from events.web.live_updates import whole_page


@never_cache
@require_safe
@page_scope(Scope.READ)
def home(request: HttpRequest) -> HttpResponse:
    """Show what waits for the viewer, what failed, what is rolling and what is live."""
    return whole_page(request, home_page(page_token(request)), Place.anywhere())
