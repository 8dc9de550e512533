"""Events by what they are about."""

from events.services.delivery import EVENTS
from events.web.webhook_views import EventGroup, event_groups


def test_every_event_is_in_one_group_and_none_is_left_over() -> None:
    groups = event_groups(EVENTS)
    assert sorted(event for group in groups for event in group.events) == sorted(EVENTS)
    assert "Others" not in [group.title for group in groups]


def test_what_begins_like_no_other_comes_last() -> None:
    assert event_groups(("Eclipse", "VersionReady", "RolloutPaused")) == (
        EventGroup("Rollouts", ("RolloutPaused",)),
        EventGroup("Models and versions", ("VersionReady",)),
        EventGroup("Others", ("Eclipse",)),
    )
