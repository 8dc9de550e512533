import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.tensors import Tensor
from deployments.domain.comparison import worst_examples
from deployments.domain.comparison.answers import Answer, compare
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import MOST_OUTPUTS, Report, add, merge
from deployments.domain.comparison.stored import report_json, stored_report, worst_json
from tests.deployments._support.pairs import START, compared, report_of, tensor


def rounded(report):
    return replace(report, disagreement=round(report.disagreement, 9))


FAIR = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ITEMS = st.lists(st.tuples(st.sampled_from([0.0, 1e-5, 0.1, 2.0]), st.booleans(), st.integers(1, 3)), max_size=20)


@FAIR
@given(ITEMS, st.data())
def test_parts_add_up_to_the_whole(items, data):
    all_of_them = [compared(number, off, failed=failed, rows=rows) for number, (off, failed, rows) in enumerate(items)]
    whole, parts = Report(), [Report(), Report(), Report()]
    for each in all_of_them:
        whole = add(whole, *each)
    for each in data.draw(st.permutations(all_of_them)):
        chosen = data.draw(st.integers(0, 2))
        parts[chosen] = add(parts[chosen], *each)
    assert rounded(merge(parts)) == rounded(whole)


@FAIR
@given(ITEMS)
def test_a_report_is_stored_as_json_and_read_back(items):
    report = Report()
    for number, (off, failed, rows) in enumerate(items):
        report = add(report, *compared(number, off, failed=failed, rows=rows))
    kept = json.loads(json.dumps([report_json(report), worst_json(report)], allow_nan=False))
    assert stored_report(*kept) == report


def test_a_report_that_nothing_was_added_to_is_an_empty_object_at_first():
    assert stored_report({}, []) == Report()


def test_answers_count_alike_however_many_rows_they_have():
    report = add(add(Report(), *compared(1, 2.0, rows=4)), *compared(2, 0.0, rows=1))
    assert (report.pairs, report.rows, report.agreeing_rows) == (2, 5, 4)
    assert report.agreement_percent == pytest.approx(87.5)
    assert report.differing == 1


def test_a_pair_without_an_answer_of_stable_counts_neither_way():
    failed = compare({}, Answer({}, error="down"), Answer({}), Terms())
    report = add(Report(), failed)
    assert (report.pairs, dict(report.outcomes)) == (0, {"StableFailed": 1})
    assert report.agreement_percent is None


def test_the_worst_come_first_and_few_are_kept():
    report = report_of(*[0.01 * number for number in range(40)])
    assert [each.request_id for each in report.worst] == [f"r{number}" for number in range(39, 29, -1)]
    assert report_of(0.0, 0.0).worst == ()


def test_a_kept_request_shows_both_answers_and_what_was_asked():
    kept = report_of(0.0, 0.5).worst[0]
    assert kept.inputs["x"] == {"datatype": "FP32", "shape": [1, 1], "values": [1.0], "least": 1.0, "most": 1.0}
    assert kept.stable["y"]["values"] == [1.0, 2.0]
    assert kept.shadow["y"]["values"] == [1.5, 2.0]
    assert kept.message == "y: values differ by up to 0.5"


def test_what_is_kept_of_a_request_is_small_whatever_it_was():
    texts = np.empty(1000, object)
    texts[:] = [b"\x00\xff" * 10_000] * 1000
    huge = {f"{number}" * 1000: Tensor("BYTES", texts) for number in range(100)}
    answers = Answer(huge), Answer({}, error="\x00\ud800" * 10_000)
    kept = worst_examples.worst_of("i" * 10_000, START, compare(huge, *answers, Terms()), huge, answers)
    text = json.dumps(kept.as_json())
    assert len(text) < 60_000
    assert "\\u0000" not in text
    assert json.dumps(kept.as_json(), ensure_ascii=False).encode()  # half a character would be refused


def test_values_that_json_cannot_hold_are_told_in_words():
    odd = worst_examples.shown(Tensor("FP32", np.array([np.nan, np.inf, 0.1], np.float32)))
    assert odd["values"] == ["nan", "inf", 0.1]
    assert worst_examples.shown(Tensor("UINT64", np.array([2**64 - 1], np.uint64)))["values"] == [str(2**64 - 1)]


def test_ever_new_outputs_do_not_fill_the_report():
    report = Report()
    for number in range(2 * MOST_OUTPUTS):
        outputs = Answer({f"y{number}": tensor([1.0])})
        report = add(report, compare({}, outputs, outputs, Terms()))
    assert len(report.outputs) == MOST_OUTPUTS
    assert report.pairs == 2 * MOST_OUTPUTS
