"""Differences give back what they were made of, for all trees, and read as a person would write them."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._support.structural.application import DoesNotFitError, applied
from tests._support.structural.difference import canonical, difference
from tests._support.structural.keys import keyed
from tests._support.structural.layout import written, written_all
from tests._support.structural.paths import entry, field, joined, parsed

WORDS = st.sampled_from(
    ["a", "b", "name", "is", "was", "but", "each", "x.y/z", "a[b]", '"', "", "--flag=1", "v-1", "1", "#2"]
)
TEXTS = WORDS | st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Z")), max_size=8)
LINES = st.lists(WORDS, max_size=5).map("\n".join)
VALUES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | LINES
)


def named(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists as manifests have them: maps with names, of which some occur twice."""
    return st.lists(st.fixed_dictionaries({"name": WORDS, "value": below}, optional={"of": below}), max_size=5)


TREES = st.recursive(
    VALUES,
    lambda below: st.lists(below, max_size=5) | st.dictionaries(TEXTS, below, max_size=4) | named(below),
    max_leaves=15,
)


@st.composite
def edited(draw: st.DrawFn, tree: Any) -> Any:
    """Return a tree that has much in common with `tree`, with lists in other orders."""
    if draw(st.integers(0, 9)) == 0:
        return draw(TREES)
    if isinstance(tree, dict):
        kept = {name: draw(edited(value)) for name, value in tree.items() if draw(st.integers(0, 5))}
        return kept | draw(st.dictionaries(TEXTS, VALUES, max_size=1))
    if isinstance(tree, list):
        items = [draw(edited(each)) for each in tree if draw(st.integers(0, 5))]
        items += draw(st.lists(st.sampled_from(tree), max_size=2)) if tree else []
        return draw(st.permutations(items)) if draw(st.booleans()) else items
    return tree


@given(TREES, TREES)
def test_a_difference_makes_the_other_tree_of_its_base(base: Any, new: Any) -> None:
    _gives_back(base, new)


@given(st.data())
def test_a_difference_makes_an_edited_tree_of_its_base(data: st.DataObject) -> None:
    base = data.draw(TREES)
    _gives_back(base, data.draw(edited(base)))


@given(st.lists(TREES, max_size=4), st.data())
@settings(max_examples=50)
def test_a_difference_keeps_the_order_of_lists(base: list[Any], data: st.DataObject) -> None:
    _gives_back(base, data.draw(st.permutations(base + base[:2])))


def _gives_back(base: Any, new: Any) -> None:
    before = copy.deepcopy(base)
    found = difference(base, new)
    assert canonical(applied(base, yaml.safe_load(written(found)))) == canonical(new)
    assert (found == {}) == (canonical(base) == canonical(new))
    assert canonical(base) == canonical(before)
    assert canonical(difference(_reversed(base), _reversed(new))) == canonical(found), "the order of fields matters"


def _reversed(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _reversed(value) for name, value in reversed(tree.items())}
    return [_reversed(each) for each in tree] if isinstance(tree, list) else tree


@given(st.lists(st.tuples(st.sampled_from(["field", "entry"]), st.text(max_size=6)), min_size=1, max_size=5))
def test_a_path_has_the_segments_it_was_made_of(segments: list[tuple[str, str]]) -> None:
    path = ""
    for kind, text in reversed(segments):
        path = joined(field(text) if kind == "field" else entry(text), path)
    assert parsed(path) == segments


@given(st.lists(TREES, max_size=4))
@settings(max_examples=30)
def test_every_entry_of_a_list_has_a_key_of_its_own(items: list[Any]) -> None:
    assert list(keyed(items).values()) == items


@given(st.lists(TREES, min_size=1, max_size=3))
@settings(max_examples=50)
def test_what_is_written_is_read(trees: list[Any]) -> None:
    assert canonical(list(yaml.safe_load_all(written_all(trees)))) == canonical(trees)


POD = {
    "name": "runtime",
    "image": "registry.example/a:1",
    "args": ["--x=1", "--y=2", "--another-option=of-them"],
    "env": [{"name": "A", "value": "1"}],
}


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        pytest.param({"a": 1}, {"a": True}, {"a": {"was": 1, "is": True}}, id="1 is not true"),
        pytest.param({"a": None}, {}, {"a": "removed"}, id="removed"),
        pytest.param({}, {"a": None}, {"a": {"is": None}}, id="added"),
        pytest.param(["a", "b"], ["b", "a"], {"": {"order": ["b", "a"]}}, id="moved"),
        pytest.param(["a", "b"], ["a", "x", "b"], {"[x]": {"after": "a", "is": "x"}}, id="added between"),
        pytest.param(["a"], ["x", "a"], {"[x]": {"after": None, "is": "x"}}, id="added first"),
        pytest.param(["a"], ["a", "x"], {"[x]": {"is": "x"}}, id="added last"),
        pytest.param(["a", "a"], ["a"], {"[a#2]": "removed"}, id="one of two alike"),
        pytest.param(
            {"containers": [POD]},
            {"containers": [{**POD, "args": ["--x=1", "--y=3", "--another-option=of-them"]}]},
            {"containers[runtime].args[--y]": {"was": "--y=2", "is": "--y=3"}},
            id="an option of a command",
        ),
        pytest.param(
            [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}, {"name": "c"}],
            [{"name": "a", "weight": 2}, {"name": "b", "weight": 2}, {"name": "c"}],
            {"": {"each": [{"but": {"weight": {"was": 1, "is": 2}}}]}},
            id="the same in each entry that it fits",
        ),
        pytest.param(
            [POD],
            [POD, {**POD, "name": "other", "env": [{"name": "A", "value": "other"}]}],
            {
                "[other]": {
                    "like": "runtime",
                    "but": {
                        "env[A].value": {"was": "1", "is": "other"},
                        "name": {"was": "runtime", "is": "other"},
                    },
                }
            },
            id="like another",
        ),
        pytest.param(
            [{"name": "v-1", "host": "v-1.example", "labels": {"of": "v-1"}}],
            [
                {"name": "v-1", "host": "v-1.example", "labels": {"of": "v-1"}},
                {"name": "v-2", "host": "v-2.example", "labels": {"of": "v-2"}},
            ],
            {"[v-2]": {"like": "v-1", "with": {"v-1": "v-2"}}},
            id="like another by another name",
        ),
        pytest.param(
            {"notes": "one\ntwo\nthree and more\nfour and more\n"},
            {"notes": "one\nthree and more\nfour and more\n"},
            {"notes": {"lines": {"[two]": "removed"}}},
            id="a line of a text",
        ),
    ],
)
def test_a_difference_says_what_changed(base: Any, new: Any, expected: Any) -> None:
    assert difference(base, new) == expected
    assert applied(base, expected) == new


@pytest.mark.parametrize(
    ("base", "change"),
    [
        pytest.param({"a": 1}, {"a": {"was": 2, "is": 3}}, id="another value"),
        pytest.param({"a": 1}, {"a": {"was": True, "is": 3}}, id="another type"),
        pytest.param({"a": 1}, {"a": {"is": 3}}, id="added, and there already"),
        pytest.param({"a": 1}, {"b": "removed"}, id="removed, and not there"),
        pytest.param({"a": 1}, {"a.b": "removed"}, id="below a value"),
        pytest.param({"a": 1}, {"a[b]": "removed"}, id="an entry of a value"),
        pytest.param({"a": {}}, {"a[b]": "removed"}, id="an entry of a map"),
        pytest.param(["a"], {"a": "removed"}, id="a field of a list"),
        pytest.param(["a"], {"[b]": "removed"}, id="no such entry"),
        pytest.param(["a"], {"[b]": {"after": "c", "is": "b"}}, id="after no entry"),
        pytest.param(["a"], {"[b]": {"like": "c"}}, id="like no entry"),
        pytest.param(["a", "b"], {"": {"order": ["a"]}}, id="an order of some"),
        pytest.param(["a", "b"], {"": {"each": [{"of": ["c"], "but": {}}]}}, id="a change of an entry that is missing"),
        pytest.param(1, {"": {"lines": {}}}, id="lines of a number"),
    ],
)
def test_a_difference_that_does_not_fit_is_refused(base: Any, change: Any) -> None:
    with pytest.raises(DoesNotFitError):
        applied(base, change)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a field nor an entry"):
        parsed("a[b")
