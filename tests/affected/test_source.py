"""What is read of one Python file."""

import pytest

from tests.affected.source import BODY, HOLE, changed, read

BEFORE = """
import os
from shop import prices

LIMIT = 3


def total(cart):
    return sum(prices.of(item) for item in cart)


def allowed(cart):
    return len(cart) < LIMIT
"""


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        pytest.param("# why\nLIMIT", "# why not\nLIMIT", set(), id="a comment changes nothing"),
        pytest.param("\n\n\ndef total", "\ndef total", set(), id="a blank line changes nothing"),
        pytest.param("LIMIT = 3", "LIMIT = 4", {"LIMIT"}, id="a value changes its name"),
        pytest.param("len(cart) <", "len(cart) <=", {"allowed"}, id="a line of a function changes the function"),
        pytest.param("def allowed", "def permitted", {"allowed", "permitted"}, id="a new name changes the old one too"),
        pytest.param(
            "from shop import prices",
            "from stall import prices",
            {"prices", "total"},
            id="an import changes what uses the name",
        ),
        pytest.param(
            "import os", "import os\nos.umask(7)", {BODY}, id="a statement that runs at once changes the body"
        ),
        pytest.param(
            "LIMIT = 3", 'LIMIT = 3\nos.environ["A"] = "b"', {BODY}, id="a value inside of an import changes the body"
        ),
    ],
)
def test_a_change_is_that_of_definitions(old: str, new: str, names: set[str]) -> None:
    before = BEFORE.replace("LIMIT = 3", "# why\nLIMIT = 3")
    assert old in before
    assert changed(read(before), read(before.replace(old, new))) == names


@pytest.mark.parametrize(
    ("line", "module", "package", "target"),
    [
        pytest.param("from shop.cart import add", "a.b", False, ("shop.cart", "add"), id="from a module"),
        pytest.param("from . import add", "a.b", False, ("a", "add"), id="from the folder"),
        pytest.param("from ..c import add", "a.b.d", False, ("a.c", "add"), id="from the folder above"),
        pytest.param("from .c import add", "a.b", True, ("a.b.c", "add"), id="from a package, of itself"),
        pytest.param("import shop.cart as add", "a.b", False, ("shop.cart", ""), id="a module by another name"),
    ],
)
def test_an_import_binds_a_name(line: str, module: str, package: bool, target: tuple[str, str]) -> None:
    for text in (line, f"def f():\n    {line}", f"try:\n    {line}\nexcept ImportError:\n    add = None"):
        assert read(text, module, package=package).bindings["add"] == {target}


def test_a_definition_has_names_strings_paths_parameters_and_the_processes_that_it_starts() -> None:
    found = read(
        "@pytest.fixture(autouse=True)\n"
        "def shop(home, tmp_path):\n"
        '    subprocess.run([sys.executable, "-m", "shop.server", f"--home={home}"])\n'
        '    return ROOT / "docs" / "shop.md"\n'
    ).definitions["shop"]
    assert found.names >= {"pytest.fixture", "subprocess.run", "sys.executable", "ROOT"}
    assert f"--home={HOLE}" in found.strings
    assert found.paths == {"docs/shop.md"}
    assert found.fixtures == {"home", "tmp_path"}
    assert found.started == {"shop.server"}
    assert found.autouse


def test_each_address_is_a_definition_of_its_own() -> None:
    found = read('urlpatterns = [path("a/", views.a), path("b/", views.b)]').definitions
    assert {name: sorted(each.names) for name, each in found.items()} == {
        "urlpatterns a/": ["path", "views.a"],
        "urlpatterns b/": ["path", "views.b"],
    }
