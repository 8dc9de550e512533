"""Blocks of requests close when their labels are due, by the clock and by counts; each label counts once."""

import json

from deployments.domain.analysis.evidence import label_watch
from deployments.domain.analysis.evidence.label_watch import JOIN_S, Span, Watch
from deployments.domain.analysis.evidence.labelled import WHOLE, Answered, Habits, Losses, Sides

HABITS = Habits("percent wrong", 100.0, 60.0, Losses(1000, 20.0, 20.0), 10.0, values=("eu",))
SETTLED = 60.0 + JOIN_S
CANARY = Losses(5, 1.0, 1.0)


def _watch() -> Watch:
    return label_watch.with_habits(label_watch.begin(1000.0), HABITS)


def _answered(ended: float, canary: Losses = CANARY) -> Answered:
    return Answered(4, 20, {WHOLE: Sides(canary, Losses(50, 1.0, 1.0))}, ended, "percent wrong", 100.0)


def _spans(watch: Watch, now: float) -> list[tuple[Span, float]]:
    return list(label_watch.open_spans(watch, now, is_paired=False))


def test_nothing_is_asked_before_the_horizon_and_the_join_have_passed() -> None:
    assert _spans(_watch(), 1000.0 + SETTLED + 1) == []
    assert _spans(_watch(), 1000.0 + SETTLED + 4) == [(Span(1000.0), 1004.0)]
    assert _spans(label_watch.begin(1000.0), 9e9) == [], "without habits"


def test_a_block_grows_until_it_has_the_labels_and_the_next_begins_at_its_end() -> None:
    watch = _watch()
    [(span, _)] = _spans(watch, 1000.0 + SETTLED + 4)
    watch, block = label_watch.after_look(watch, span, Answered(2, 20, {}, 1004.0, "percent wrong", 100.0))
    assert (block, watch.now.start, watch.seen_canary, watch.seen_stable) == (None, 1000.0, 2, 20)
    [(span, ready)] = _spans(watch, 1000.0 + SETTLED + 6)
    watch, block = label_watch.after_look(watch, span, _answered(ready))
    assert block is not None
    assert block.before == {WHOLE: HABITS.stable}, "what was known before it"
    assert (watch.now.start, watch.of().canary.labels, watch.before[WHOLE].labels) == (1006.0, 5, 1050)
    watch, _ = label_watch.after_look(watch, watch.now, _answered(1008.0))
    assert watch.of().canary.labels == 10


def test_what_is_open_when_a_step_ends_waits_and_its_labels_are_not_those_of_the_next() -> None:
    watch = label_watch.after_looks(_watch(), 1100.0)
    after = label_watch.begin(1110.0, watch)
    assert (after.waiting, after.now, after.habits) == ((Span(1000.0, 1100.0),), Span(1110.0), HABITS)
    [(span, ready)] = _spans(after, 1000.0 + SETTLED + 40)
    after, block = label_watch.after_look(after, span, _answered(ready))
    assert block is not None
    assert (after.waiting, after.sums) == ((Span(1040.0, 1100.0),), {})
    [(span, ready)] = _spans(after, 1110.0 + SETTLED)
    assert ready == 1100.0
    after, block = label_watch.after_look(after, span, Answered(1, 3, {}, 1100.0, "percent wrong", 100.0))
    assert (block, after.waiting) == (None, ()), "too little for a block, and no more can come"


def test_a_step_without_a_look_leaves_nothing_to_wait_for() -> None:
    after = label_watch.begin(1200.0, label_watch.begin(1110.0, _watch()))
    assert after.waiting == ()


def test_losses_between_0_and_1_are_remembered_for_the_blocks_after() -> None:
    watch = _watch()
    [(span, ready)] = _spans(watch, 1000.0 + SETTLED + 4)
    watch, block = label_watch.after_look(watch, span, _answered(ready, Losses(5, 1.0, 0.5)))
    assert block is not None
    assert (block.is_graded, watch.is_graded) == (False, True)


def test_a_scorer_that_was_changed_ends_the_evidence_and_says_so() -> None:
    watch = _watch()
    [(span, ready)] = _spans(watch, 1000.0 + SETTLED + 4)
    changed = Answered(4, 20, {}, ready, "nats", 5.0)
    watch, block = label_watch.after_look(watch, span, changed)
    assert block is None
    assert "the scorer was changed during the rollout" in watch.problem
    assert watch.now.start == 1000.0


def test_it_survives_json() -> None:
    watch = label_watch.begin(1110.0, label_watch.after_looks(_watch(), 1100.0))
    watch, _ = label_watch.after_look(watch, watch.now, _answered(1114.0))
    assert label_watch.stored_watch(json.loads(json.dumps(label_watch.watch_json(watch)))) == watch
    begun = label_watch.begin(1.0)
    assert label_watch.stored_watch(json.loads(json.dumps(label_watch.watch_json(begun)))) == begun
