"""The import rules hold, but for today's violations, which may only become fewer.

The rules follow the path (`rooms`), so that a moved module has those of its new place. The lists are in `recorded/`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nets._support.modules import imports, modules, rooms
from tests.nets._support.recording import check_shrinks
from tests.nets.contracts import rules
from tests.nets.contracts.circles import circles
from tests.nets.contracts.rooms import LAYERS, LEVELS, PROGRAMS, layer, level

RULES = {
    "imports_of_rooms.txt": (rules.of_rooms, "import only what is below, in the order of `rooms.LEVELS`"),
    "imports_of_layers.txt": (rules.of_layers, "import only what is below, in the order of `rooms.LAYERS`"),
    "modules_in_no_layer.txt": (rules.unplaced, "put the module into a layer's package, `domain` if it is pure"),
    "imports_of_pure_code.txt": (rules.of_purity, "take it from the caller, or move the module out of pure code"),
    "imports_between_programs.txt": (rules.of_programs, "put what both need into serving_runtime/shared"),
}


@pytest.mark.parametrize("name", RULES)
def test_imports_follow_the_rules(name: str) -> None:
    rule, remedy = RULES[name]
    check_shrinks(name, list(rule()), remedy)


def test_each_package_is_a_room_of_the_table() -> None:
    known = {room for each in LEVELS for room in each} | set(PROGRAMS)
    assert sorted(rooms() - known) == [], "give it a level in `rooms.LEVELS`"


def test_no_word_is_in_the_table_twice() -> None:
    for table in (LEVELS, LAYERS):
        words = [word for each in table for word in each]
        assert len(words) == len(set(words))


def test_modules_import_one_another_in_no_circle() -> None:
    graph = {name: imports(name) & modules().keys() for name in modules()}
    found = [f"{module} in the circle of {each[0]}" for each in circles(graph) for module in each]
    check_shrinks("circles.txt", found, "take one of the imports out, also of those inside functions")


def test_a_circle_would_be_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"f"}, "f": {"e"}}
    assert sorted(circles(graph)) == [["a", "b", "c"], ["e", "f"]]


def test_rules_know_rooms_and_layers() -> None:
    assert level("accounts") > level("registry")  # type: ignore[operator]  # neither is None
    assert layer("registry.api.views") < layer("registry.models")  # type: ignore[operator]
    assert layer("registry.domain.lifecycle") == len(LAYERS) - 1
    assert layer("registry.some_module_of_no_layer") is None


@pytest.fixture
def listed(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "list.txt").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(["a -> b", "c -> d"], "1 new, mend it:\nc -> d", id="a violation that is not listed"),
        pytest.param([], "1 of list.txt are gone", id="one that is listed and is no more"),
    ],
)
def test_a_list_neither_grows_nor_keeps_what_is_gone(
    listed: Callable[[str], Path], found: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRLEAD_UPDATE_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match=words.replace(".", r"\.")):
        check_shrinks("list.txt", found, "mend it", folder=listed("a -> b\n"))


@pytest.mark.parametrize(
    ("found", "after"),
    [
        pytest.param(["moved.a -> b"], "moved.a -> b\n", id="a moved module keeps its violation"),
        pytest.param(["a -> b", "c -> d"], "a -> b\n", id="more than before are refused"),
    ],
)
def test_golden_writes_no_longer_list(
    listed: Callable[[str], Path], found: list[str], after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_UPDATE_GOLDEN", "1")
    folder = listed("a -> b\n")
    try:
        check_shrinks("list.txt", found, "mend it", folder=folder)
    except AssertionError:
        assert len(found) > 1
    assert (folder / "list.txt").read_text() == after
