"""What turns of the reconciler keep of a service's answers, up to which limits, and what is left where one dies."""

import base64
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext

from deployments.models import InferenceService
from deployments.reconcile import reconciler
from feedback.models import Answer
from feedback.reconcile import answers
from feedback.selectors.answers import answer_values, kept_tensor, problem_of
from feedback.services.answers import answers_stop
from integrations.clusters.base import Tap
from serving_runtime.shared.sampling import is_sampled
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import INPUT, LABEL, PROBABILITIES, SERVICE, Keeping


@pytest.fixture
def keeping(platform: Platform) -> Keeping:
    return Keeping(platform)


def test_turns_keep_each_answer_once_with_its_top_classes(keeping: Keeping) -> None:
    keeping.answer("a", "b")
    keeping.platform.turn()
    keeping.answer("c")
    assert keeping.ids() == ["a", "b", "c"]
    first = Answer.objects.get(request_id="a")
    assert (first.revision, first.version, first.top) == ("digits-00001", 1, [[1, 0.7], [0, 0.5]])
    assert (bytes(first.sealed), first.parameters) == (b"", {})
    row = keeping.row()
    assert (row.rows, row.bytes, row.left_out) == (3, Answer.objects.aggregate(all=Sum("bytes"))["all"], 0)
    assert problem_of(row) == ""


def test_stable_and_canary_are_tapped_while_answers_are_kept(platform: Platform) -> None:
    keeping = Keeping(platform, share_percent=12.5)
    assert keeping.taps() == {"digits-00001": Tap(12.5)}
    platform.version(2)
    platform.start()
    platform.turn()
    assert keeping.taps() == {"digits-00001": Tap(12.5), "digits-00002": Tap(12.5)}
    answers_stop(**SERVICE, actor="bob", now=platform.clock())
    platform.turn()
    assert keeping.taps() == {"digits-00001": None, "digits-00002": None}


def test_a_copied_request_has_an_answer_of_each_revision(platform: Platform) -> None:
    keeping = Keeping(platform)
    platform.version(2)
    platform.start()
    platform.turn()
    keeping.record(*(keeping.exchange("a", f"digits-0000{number}") for number in (1, 2, 3)))
    platform.turn()
    kept = Answer.objects.order_by("revision").values_list("request_id", "revision", "version")
    assert list(kept) == [("a", "digits-00001", 1), ("a", "digits-00002", 2)]


def test_errors_and_what_came_before_are_left_out(keeping: Keeping) -> None:
    keeping.record(keeping.exchange("broken", error_code="INTERNAL"), keeping.exchange("early", after_s=-3600))
    keeping.answer("kept")
    assert keeping.ids() == ["kept"]
    assert keeping.row().left_out == 0


def test_only_the_share_is_kept(platform: Platform) -> None:
    """A comparison or a recording may want more of the same requests."""
    keeping = Keeping(platform, share_percent=30)
    names = [f"request-{number}" for number in range(200)]
    keeping.answer(*names)
    assert keeping.ids() == [name for name in names if is_sampled(name, 0.3)]
    assert 30 < len(keeping.ids()) < 90


def test_an_id_that_is_used_twice_has_the_first_answer(keeping: Keeping) -> None:
    other = {**PROBABILITIES, "data": [0.7, 0.1, 0.2, 0.5, 0.25, 0.25]}
    keeping.record(keeping.exchange("a"), keeping.exchange("a", outputs=[other]))
    keeping.platform.turn()
    keeping.answer("a", outputs=[other])
    assert [each.top[0] for each in Answer.objects.all()] == [[1, 0.7]]
    assert (keeping.row().rows, keeping.row().left_out) == (1, 0)


def test_the_values_that_were_asked_for_are_kept_encrypted(platform: Platform) -> None:
    keeping = Keeping(
        platform, output="label", outputs=["label"], keeps_inputs=True, parameters=["site", "age", "is_new"]
    )
    keeping.answer("a", parameters={"site": "north", "age": 7, "is_new": True, "secret": "x"})
    answer = Answer.objects.get()
    assert (answer.top, answer.parameters) == ([[1, 1], [0, 0]], {"site": "north", "age": "7", "is_new": "true"})
    fields = ("datatype", "shape", "data")
    assert answer_values(answer) == {
        "outputs": {"label": {key: LABEL[key] for key in fields}},
        "inputs": {"image": {key: INPUT[key] for key in fields}},
    }
    assert b"271828.25" not in bytes(answer.sealed)


def test_values_that_json_does_not_have_are_kept_in_their_binary_form(platform: Platform) -> None:
    keeping = Keeping(platform, outputs=["label"])
    numbers = np.array([[0.25, np.nan]], np.float16)
    data = [base64.b64encode(numbers.tobytes()).decode()]
    output = {"name": "label", "datatype": "FP16", "shape": [1, 2], "parameters": {"encoding": "base64"}, "data": data}
    keeping.answer("a", outputs=[output])
    answer = Answer.objects.get()
    assert answer.top == [[0, 0.25]]
    tensor = kept_tensor(answer_values(answer), "outputs", "label")
    assert tensor is not None
    assert np.array_equal(tensor.values, numbers, equal_nan=True)
    assert kept_tensor(answer_values(answer), "inputs", "image") is None


def test_values_that_are_too_large_are_left_out_inputs_first(platform: Platform) -> None:
    keeping = Keeping(platform, outputs=["label"], keeps_inputs=True)
    large = {"name": "image", "datatype": "FP32", "shape": [1, 40_000], "data": [0.5] * 40_000}
    keeping.answer("a", inputs=[large])
    assert answer_values(Answer.objects.get()) == {
        "outputs": {"label": {key: LABEL[key] for key in ("datatype", "shape", "data")}},
        "inputs": {},
        "left_out": "inputs take more than the 64 KiB that are kept",
    }


def test_answers_beyond_the_rows_are_left_out_and_counted(platform: Platform) -> None:
    keeping = Keeping(platform, max_rows=3)
    keeping.answer("a", "b")
    keeping.answer("c", "d", "e")
    keeping.answer("f", "a")
    assert keeping.ids() == ["a", "b", "c"]
    assert (keeping.row().rows, keeping.row().left_out) == (3, 3)
    assert problem_of(keeping.row()) == (
        "the limit of 3 answers is reached, so that further ones are left out, 3 so far; raise it, or keep a smaller "
        "share or fewer days"
    )
    keeping.keep(max_rows=4)
    keeping.answer("g")
    assert (keeping.ids(), problem_of(keeping.row())[:23]) == (["a", "b", "c", "g"], "the limit of 4 answers ")


def test_answers_beyond_the_bytes_are_left_out_and_counted(platform: Platform) -> None:
    keeping = Keeping(platform)
    keeping.answer("a")
    size = keeping.row().bytes
    keeping.keep(max_bytes=3 * size)
    keeping.answer("b", "c", "d")
    assert (keeping.ids(), keeping.row().bytes, keeping.row().left_out) == (["a", "b", "c"], 3 * size, 1)
    assert problem_of(keeping.row()).startswith(f"the limit of {3 * size} bytes is reached")


@pytest.mark.parametrize("where", ["collect", "record"])
def test_a_turn_that_dies_is_made_good_by_the_next(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    keeping.answer("a")
    keeping.record(keeping.exchange("b"))

    def dies(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(answers.Answers, where, dies)
        with pytest.raises(SystemExit):
            keeping.platform.turn()
    keeping.platform.clock.go_on(60)
    keeping.platform.turn()
    assert (keeping.ids(), keeping.row().rows) == (["a", "b"], 2)


def test_a_turn_that_was_overtaken_keeps_nothing_twice(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping.record(keeping.exchange("a"))
    collect = answers.Answers.collect

    def overtaken(*arguments: Any) -> Any:
        InferenceService.objects.update(changes=InferenceService.objects.get().changes + 1)
        return collect(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(answers.Answers, "collect", overtaken)
        assert keeping.platform.turn() is reconciler.Outcome.OVERTAKEN
    assert keeping.row().rows == 0
    keeping.platform.turn()
    assert (keeping.ids(), keeping.row().rows) == (["a"], 1)


def test_payloads_that_are_read_again_are_not_counted_again(keeping: Keeping) -> None:
    """A cluster whose cursor was lost reads all its files again."""
    keeping.answer("a", "b")
    InferenceService.objects.update(tap_cursor="", changes=InferenceService.objects.get().changes + 1)
    keeping.answer("c")
    assert (keeping.ids(), keeping.row().rows, keeping.row().left_out) == (["a", "b", "c"], 3, 0)


def test_turns_of_a_service_that_keeps_nothing_ask_for_nothing(platform: Platform) -> None:
    platform.live()
    platform.turn()
    with CaptureQueriesContext(connection) as counted:
        platform.turn()
    assert not [query["sql"] for query in counted if "feedback_" in query["sql"]]


def test_a_turn_asks_as_often_for_many_answers_as_for_one(keeping: Keeping) -> None:
    counts = []
    for start, number in ((0, 1), (1, 100)):
        keeping.record(*(keeping.exchange(f"r{start + each}") for each in range(number)))
        with CaptureQueriesContext(connection) as counted:
            keeping.platform.turn()
        asked = [query["sql"] for query in counted if "feedback_" in query["sql"]]
        counts.append(len([sql for sql in asked if "feedback_drift" not in sql]))
    assert counts == [4, 4]  # what is kept; which are there; insert; the sums
    with CaptureQueriesContext(connection) as counted:
        keeping.platform.turn()
    assert not [query["sql"] for query in counted if "feedback_" in query["sql"]]


def test_a_clock_ahead_does_not_defer_the_deletion(keeping: Keeping) -> None:
    keeping.answer("a", after_s=timedelta(days=900).total_seconds())
    assert Answer.objects.get().at <= keeping.platform.clock()
