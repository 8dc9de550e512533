"""Events by what they are about."""

from events.services.delivery import EVENTS
from events.web.event_groups import Group, grouped


def test_every_event_is_in_one_group_and_none_is_left_over() -> None:
    groups = grouped(EVENTS)
    assert sorted(event for group in groups for event in group.events) == sorted(EVENTS)
    assert "Others" not in [group.title for group in groups]


def test_what_begins_like_no_other_comes_last() -> None:
    assert grouped(("Eclipse", "VersionReady", "RolloutPaused")) == (
        Group("Rollouts", ("RolloutPaused",)),
        Group("Models and versions", ("VersionReady",)),
        Group("Others", ("Eclipse",)),
    )
