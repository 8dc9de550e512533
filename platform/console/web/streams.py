"""Live updates of the home page."""

from functools import partial

from django.http import HttpRequest

from accounts.auth.permissions import page_token
from accounts.domain.scopes import Scope
from console.selectors.home import home_marks
from console.web.home_page import home_page
from deployments.web.streams import with_traffic
from events.services.live_feed import Topic
from events.web.live_updates import Source, anywhere, page_of_token, streamed

SOURCE = Source(home_marks, Scope.READ)


@streamed(SOURCE, anywhere)
def home_stream(request: HttpRequest) -> Topic:
    """Stream what changes at Home."""
    token = page_token(request)
    return Topic(key=("home", token.pk), mark=with_traffic, load=partial(page_of_token, token.pk, home_page))
