import random

import pytest

from deployments.domain.analysis.verdict import Verdict
from deployments.domain.comparison.agreement import interval_percent, measure, shown_percent
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import Report
from tests.deployments._support.pairs import report_of

TERMS = Terms(min_pairs=200, min_agreement_percent=99)


def report(pairs, differing, disagreement=None):
    return Report(pairs=pairs, differing=differing, disagreement=differing if disagreement is None else disagreement)


@pytest.mark.parametrize(
    ("pairs", "differing", "verdict", "said"),
    [
        pytest.param(
            0,
            0,
            Verdict.RUNNING,
            "no answer of the new version was compared yet; a verdict needs 200",
            id="nothing yet",
        ),
        pytest.param(50, 0, Verdict.RUNNING, "a verdict needs 150 more", id="few that agree"),
        pytest.param(
            200, 0, Verdict.SUCCESSFUL, "agree with stable's in 100 % of 200 requests", id="enough that agree"
        ),
        pytest.param(200, 2, Verdict.SUCCESSFUL, "99 %", id="as many differ as may"),
        pytest.param(
            200,
            3,
            Verdict.RUNNING,
            "at least 100 more that agree are needed",
            id="one too many is not clear",
        ),
        pytest.param(50, 2, Verdict.RUNNING, "a verdict needs 150 more", id="two may still be within the limit"),
        pytest.param(50, 4, Verdict.RUNNING, "at least 350 more that agree are needed", id="four prove nothing"),
        pytest.param(10, 10, Verdict.FAILED, "0 % of 10 requests", id="all that differ are clear at once"),
        pytest.param(1000, 60, Verdict.FAILED, "94 % of 1000 requests", id="many that differ are clear"),
    ],
)
def test_the_verdict_on_the_agreement(pairs, differing, verdict, said):
    measured = measure(report(pairs, differing), TERMS)
    assert (measured.verdict, measured.limit, measured.metric) == (verdict, 99, "answer_agreement")
    assert said in measured.message


def test_an_outage_of_the_recordings_neither_promotes_nor_fails():
    for seen in (report(1000, 0), report(1000, 500)):
        measured = measure(seen, TERMS, problem="the files are gone")
        assert measured.verdict is Verdict.RUNNING
        assert "the files are gone" in measured.message


def test_a_limit_of_all_is_broken_by_one():
    every = Terms(min_pairs=10, min_agreement_percent=100)
    assert measure(report(5, 1), every).verdict is Verdict.FAILED
    assert measure(report(10, 0), every).verdict is Verdict.SUCCESSFUL


def test_a_failure_names_the_worst_request():
    assert "the worst: y: values differ by up to 2" in measure(report_of(*[2.0] * 10), TERMS).message


def test_rows_of_a_batch_weigh_as_a_part_of_their_answer():
    assert measure(report(1000, 20, disagreement=2.0), TERMS).verdict is Verdict.SUCCESSFUL


def test_the_interval_holds_at_all_looks_together_also_for_parts_of_answers():
    """Of 400 services whose answers agree to 97 %, each looked at after every pair, few ever see bounds without it."""
    draw, missed = random.Random(7), 0
    for _ in range(400):
        disagreement = 0.0
        for pairs in range(1, 301):
            disagreement += draw.choice([0.25, 0.5, 0.75]) if draw.random() < 0.06 else 0.0
            if pairs % 10 == 0:
                low, high = interval_percent(report(pairs, 1, disagreement), alpha=0.05)
                if not low <= 97 <= high:
                    missed += 1
                    break
    assert missed <= 20
    low, high = interval_percent(report(300, 1, disagreement), alpha=0.05)
    assert high - low < 12


@pytest.mark.parametrize(("percent", "text"), [(100, "100"), (99.999, "99.99"), (99, "99"), (97.5, "97.5"), (0, "0")])
def test_a_percentage_is_not_rounded_up_to_all(percent, text):
    assert shown_percent(percent) == text
