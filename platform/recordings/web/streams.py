"""Live updates of the pages of recordings and replays."""

from functools import partial

from django.http import HttpRequest

from accounts.domain.scopes import Scope
from events.services.live_feed import Topic
from events.web.live_updates import Source, of_service, row_topic, streamed
from recordings.selectors.recordings import recording_get, recording_marks
from recordings.selectors.replays import replay_get, replay_marks
from recordings.web.recording_pages import recording_page, replay_page

RECORDINGS, REPLAYS = Source(recording_marks, Scope.READ), Source(replay_marks, Scope.READ)


@streamed(RECORDINGS, of_service)
def recording_stream(_request: HttpRequest, namespace: str, name: str, recording_id: int) -> Topic:
    """Stream what changes on a recording's page; raises NotFound."""
    row = recording_get(namespace=namespace, name=name, recording_id=recording_id)
    return row_topic("recording", row.pk, partial(recording_page, namespace, name, recording_id))


@streamed(REPLAYS, of_service)
def replay_stream(_request: HttpRequest, namespace: str, name: str, replay_id: int) -> Topic:
    """Stream what changes on a replay's page; raises NotFound."""
    row = replay_get(namespace=namespace, name=name, replay_id=replay_id)
    return row_topic("replay", row.pk, partial(replay_page, namespace, name, replay_id))
