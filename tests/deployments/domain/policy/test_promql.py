from datetime import timedelta

import pytest

from common.errors import InvalidInput
from deployments.domain.policy.promql import check_query, fill, is_per_revision, look_back

VALUES = {
    "namespace": "shop",
    "service": "digits",
    "revision": "digits-00002",
    "version": "2",
    "stable": "digits-00001",
    "canary": "digits-00002",
    "interval": "30s",
}


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        pytest.param("up", "up", id="nothing to fill in"),
        pytest.param(
            'rate(x{revision="{{revision}}"}[{{ interval }}])',
            'rate(x{revision="digits-00002"}[30s])',
            id="spaces within the braces do not matter",
        ),
        pytest.param(
            'a{pod=~"{{canary}}-.+"} / b{pod=~"{{stable}}-.{3}",ns="{{namespace}}"}',
            'a{pod=~"digits-00002-.+"} / b{pod=~"digits-00001-.{3}",ns="shop"}',
            id="braces of a regular expression stay",
        ),
        pytest.param("x{v={{version}}}", "x{v=2}", id="a placeholder before a closing brace"),
        pytest.param("x # {{service}}, (unclosed", "x # digits, (unclosed", id="comments need no balance"),
        pytest.param('x{a="}\\"", b=\'{\', c=`(`}', 'x{a="}\\"", b=\'{\', c=`(`}', id="nor do texts"),
    ],
)
def test_placeholders_are_filled_in(query: str, filled: str) -> None:
    assert fill(check_query(query, field="query"), VALUES) == filled


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param(
            'x{pod="{{pod}}"}',
            "metrics[0].query has the placeholder {{pod}}, which is unknown; known are {{namespace}}, {{service}}, "
            "{{revision}}, {{version}}, {{stable}}, {{canary}}, {{interval}}",
            id="unknown",
        ),
        pytest.param('x{r="{{revision}"}', "metrics[0].query has {{ that belongs to no placeholder", id="not closed"),
        pytest.param('x{r="{revision}}"}', "metrics[0].query has }} that belongs to no placeholder", id="not opened"),
        pytest.param('x{r="{{ .Revision }}"}', "metrics[0].query has {{ that belongs to no placeholder", id="Go's"),
        pytest.param('sum(x{r="a"}', "metrics[0].query has a '(' that is never closed", id="a bracket is missing"),
        pytest.param("sum(x]", "metrics[0].query has a ']' without its '['", id="the wrong bracket"),
        pytest.param("x}", "metrics[0].query has a '}' without its '{'", id="a bracket too much"),
        pytest.param('x{r="a}', 'metrics[0].query has a text that begins with " and does not end', id="no end"),
        pytest.param("  ", "metrics[0].query has 2 characters; expected 1 to 4000", id="empty"),
        pytest.param("x" * 4001, "metrics[0].query has 4001 characters; expected 1 to 4000", id="too long"),
    ],
)
def test_what_can_be_no_query_is_refused(query: str, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        check_query(query, field="metrics[0].query")
    assert raised.value.message.startswith(said)
    assert raised.value.field == "metrics[0].query"


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("up", 0, id="none"),
        pytest.param("rate(x[5m])", 300, id="a range"),
        pytest.param("rate(x[90s]) / rate(y[1m30s])", 90, id="two of the same length"),
        pytest.param("max_over_time(rate(x[1m])[10m:30s])", 600, id="a subquery"),
        pytest.param("rate(x[{{interval}}])", 0, id="as long as the interval, whatever that is"),
        pytest.param('x{a="[5m]"} # [1h]', 0, id="neither in texts nor in comments"),
        pytest.param("rate(x[1h30m500ms])", 5400.5, id="several units"),
    ],
)
def test_how_far_a_query_looks_back(query: str, seconds: float) -> None:
    assert look_back(query) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('x{r="{{revision}}"}', True),
        ('x{version="{{ version }}"}', True),
        ('x{r="{{canary}}"} / x{r="{{stable}}"}', False),
    ],
)
def test_whether_both_sides_can_be_asked(query: str, expected: bool) -> None:
    assert is_per_revision(query) is expected
