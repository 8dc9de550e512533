"""Live updates of the page of a cluster's GPUs."""

from functools import partial

from django.http import HttpRequest

from accounts.domain.scopes import Scope
from clusters.selectors import cluster_get
from events.services.live_feed import Topic
from events.web.live_updates import Source, of_installation, row_topic, streamed
from gpus.selectors.gpus import gpu_marks
from gpus.web.gpu_page import gpu_page

SOURCE = Source(gpu_marks, Scope.ADMIN)


@streamed(SOURCE, of_installation)
def gpu_stream(_request: HttpRequest, name: str) -> Topic:
    """Stream what changes on the page of a cluster's GPUs; raises NotFound."""
    return row_topic("gpus", cluster_get(name=name).pk, partial(gpu_page, name))
