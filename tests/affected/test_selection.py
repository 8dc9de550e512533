"""The choice on a small work tree with real git: an app with pages, a server, and tests of each."""

import subprocess
from pathlib import Path

import pytest

from tests.affected.cache import Cache
from tests.affected.changes import GitError, Repository
from tests.affected.files import TEMPLATES
from tests.affected.selection import Chosen, Tree, select

FILES = {
    "platform/control_plane/settings.py": 'MIDDLEWARE = ["fairlead.headers.Headers"]\nDATABASES = {}\nLIMIT = 3\n',
    "platform/fairlead/headers.py": "class Headers: ...\n",
    "platform/control_plane/urls.py": (
        'from django.urls import include, path\n\nurlpatterns = [path("", include("shop.urls"))]\n'
    ),
    "platform/shop/__init__.py": "",
    "platform/shop/urls.py": (
        "from shop import views\n\n"
        'urlpatterns = [path("carts/<int:number>/", views.cart), path("people/", views.people)]\n'
    ),
    "platform/shop/views.py": (
        "from django.conf import settings\nfrom shop import prices\nfrom shop.people import named\n\n\n"
        'def cart(request):\n    return render(request, "shop/cart.html", {"total": prices.total(settings.LIMIT)})\n'
        'def people(request):\n    return render(request, "shop/people.html", {"named": named()})\n'
    ),
    "platform/shop/prices.py": "def total(limit):\n    return limit\n\n\ndef rebate(limit):\n    return 0\n",
    "platform/shop/people.py": "def named():\n    return []\n",
    "platform/shop/unused.py": "def nothing():\n    return 0\n",
    "platform/shop/templatetags/money.py": "def euros(value):\n    return value\n\n\ndef dollars(value): ...\n",
    "frontend/templates/shop/cart.html": '{% load money %}{% include "shop/_line.html" %}{{ total|euros }}',
    "frontend/templates/shop/_line.html": "<p></p>",
    "frontend/templates/shop/people.html": "<p></p>",
    "serving_runtime/__main__.py": "from serving_runtime.server import serve\n\nserve()\n",
    "serving_runtime/server.py": "def serve():\n    return 0\n",
    "docs/shop.md": "# Shop\n",
    "docs/other.md": "# Other\n",
    "CHANGELOG.md": "",
    "requirements/dev.txt": "",
    "pyproject.toml": '[project]\nname = "shop"\n\n[tool.ruff]\nline-length = 100\n',
    "strange.bin": "",
    "tests/conftest.py": (
        "import pytest\nfrom shop.people import named\nfrom tests.helping import helped\n\n\n"
        "@pytest.fixture\ndef everybody():\n    return named()\n\n\n"
        "everyone = everybody\n\n\n@pytest.fixture(autouse=True)\ndef _always():\n    helped()\n"
    ),
    "tests/helping.py": (
        'def helped():\n    return (0 / "tests").rglob("test_*.py")\n\n\ndef unhelped():\n    return 0\n'
    ),
    "tests/shop/test_prices.py": "from shop import prices\n\n\ndef test_total():\n    assert prices.total(3) == 3\n",
    "tests/shop/test_rebate.py": "from shop.prices import rebate\n\n\ndef test_it():\n    assert not rebate(1)\n",
    "tests/shop/test_cart_page.py": 'def test_it(client):\n    client.get("/carts/7/")\n',
    "tests/shop/test_people_page.py": 'PAGE = "/people/"\n\n\ndef test_it(client):\n    client.get(PAGE)\n',
    "tests/shop/test_everybody.py": "def test_it(everybody):\n    assert not everybody\n",
    "tests/shop/test_everyone.py": "def test_it(everyone):\n    assert not everyone\n",
    "tests/shop/test_page.py": (
        'ROOT = 1\n\n\ndef test_it():\n    assert (ROOT / "docs" / "shop.md").read_text()\n'
    ),
    "tests/shop/golden/cart.yaml": "a: 1\n",
    "tests/serving_runtime/test_server.py": (
        'import sys\n\n\ndef test_it():\n    start([sys.executable, "-m", "serving_runtime"])\n'
    ),
    "tests/serving_runtime/test_limits.py": (
        'import sys\n\n\ndef test_it():\n    start([sys.executable, "-m", "serving_runtime"])\n'
    ),
    "tests/control_plane/test_docs.py": "def test_it():\n    assert 1\n",
}  # fmt: skip
ALL_SHOP = {
    f"tests/shop/test_{name}.py"
    for name in ("cart_page", "everybody", "everyone", "page", "people_page", "prices", "rebate")
}
ALL = ALL_SHOP | {
    "tests/serving_runtime/test_server.py",
    "tests/serving_runtime/test_limits.py",
    "tests/control_plane/test_docs.py",
}


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A work tree on a branch of its own, with nothing changed."""
    root = tmp_path / "tree"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git(tmp_path, "init", "--quiet", "tree")
    for arguments in (["add", "."], ["commit", "-qm", "All"], ["checkout", "-qb", "own"]):
        git(root, *arguments)
    return root


def chosen(root: Path, since: str | None = None) -> Chosen:
    repository = Repository(root)
    paths = repository.paths()
    with Cache(root / ".git" / "cache") as cache:
        sources = {path: cache.read(path, repository.read(path) or "") for path in paths if path.endswith(".py")}
    templates = {path: repository.read(path) or "" for path in paths if path.startswith(TEMPLATES)}
    return select(repository.changes(repository.base(since)), Tree(sources, templates, paths))


def files(*names: str) -> set[str]:
    return {f"tests/{name}.py" for name in names}


@pytest.mark.parametrize(
    ("path", "old", "new", "near"),
    [
        pytest.param(
            "platform/shop/prices.py", "return limit", "return 1", files("shop/test_prices", "shop/test_cart_page"),
            id="a function: who calls it, and who asks an address whose view does",
        ),
        pytest.param(
            "platform/shop/prices.py", "return 0", "return 1", files("shop/test_rebate"),
            id="another function of the same file: who calls that one",
        ),
        pytest.param(
            "platform/shop/prices.py", "def rebate", "SPARE = 1\n\n\ndef rebate", set(),
            id="a name that nobody uses in a file that tests reach: none",
        ),
        pytest.param("platform/shop/prices.py", "def rebate", "# why\ndef rebate", set(), id="a comment: none"),
        pytest.param(
            "platform/shop/people.py", "return []", "return ['a']",
            files("shop/test_people_page", "shop/test_everybody", "shop/test_everyone"),
            id="what a fixture uses: who has the fixture as a parameter",
        ),
        pytest.param("tests/helping.py", "(0 / ", "(1 / ", ALL, id="what a fixture for all uses: all"),
        pytest.param(
            "platform/shop/urls.py", "views.people", "views.nobody", files("shop/test_people_page"),
            id="an address: who asks it",
        ),
        pytest.param(
            "platform/control_plane/settings.py", "LIMIT = 3", "LIMIT = 4", files("shop/test_cart_page"),
            id="a setting: who reaches what reads it",
        ),
        pytest.param(
            "platform/fairlead/headers.py", "...", "a = 1", files("shop/test_cart_page", "shop/test_people_page"),
            id="a middleware: who asks any address",
        ),
        pytest.param(
            "frontend/templates/shop/people.html", "<p>", "<b>", files("shop/test_people_page"),
            id="a template: who asks the address whose view names it",
        ),
        pytest.param(
            "frontend/templates/shop/_line.html", "<p>", "<b>", files("shop/test_cart_page"),
            id="a part of a template: who asks the page that includes it",
        ),
        pytest.param(
            "platform/shop/templatetags/money.py", "def euros(value):\n    return value",
            "def euros(value):\n    return 1", files("shop/test_cart_page"),
            id="a filter: who asks a page whose template has its name",
        ),
        pytest.param(
            "docs/shop.md", "Shop", "Stall", files("shop/test_page", "control_plane/test_docs"),
            id="a page of the documentation: who names it, and the tests of all pages",
        ),
        pytest.param(
            "docs/other.md", "Other", "O", files("control_plane/test_docs"), id="another page: the tests of all"
        ),
        pytest.param("tests/shop/golden/cart.yaml", "1", "2", ALL_SHOP, id="data of tests: those of the folder above"),
        pytest.param("tests/shop/test_rebate.py", "(1)", "(2)", files("shop/test_rebate"), id="a test: itself"),
        pytest.param("pyproject.toml", "100", "120", set(), id="what only `make check` reads: none"),
    ],
)  # fmt: skip
def test_a_change_chooses(root: Path, path: str, old: str, new: str, near: set[str]) -> None:
    assert old in FILES[path]
    (root / path).write_text(FILES[path].replace(old, new))
    found = chosen(root)
    assert (set(found.near), found.far, found.everything) == (near, [], None)


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        pytest.param("requirements/dev.txt", "x", "the locked dependencies", id="a lock"),
        pytest.param("pyproject.toml", '[project]\nname = "stall"\n', "no rule knows", id="the project's own tables"),
        pytest.param("strange.bin", "x", "no rule knows", id="a file that no rule knows"),
        pytest.param("platform/shop/unused.py", "a = 1", "no rule knows", id="a module that no test reaches"),
        pytest.param(
            "platform/control_plane/settings.py",
            FILES["platform/control_plane/settings.py"].replace("{}", "{1: 2}"),
            "Django itself reads DATABASES",
            id="a setting that only Django reads",
        ),
    ],
)
def test_a_change_means_every_test_and_says_why(root: Path, path: str, text: str, reason: str) -> None:
    (root / path).write_text(text)
    found = chosen(root)
    assert set(found.near) == ALL
    assert found.everything is not None
    assert found.everything.startswith(f"{path}: ")
    assert reason in found.everything


def test_what_only_a_process_reaches_is_far_but_not_the_test_of_the_same_name(root: Path) -> None:
    (root / "serving_runtime/server.py").write_text("def serve():\n    return 1\n")
    assert chosen(root) == Chosen(["tests/serving_runtime/test_server.py"], ["tests/serving_runtime/test_limits.py"])


def test_the_test_of_the_same_name_comes_first(root: Path) -> None:
    (root / "platform/shop/prices.py").write_text("def total(limit):\n    return 1\n")
    assert chosen(root).near == [
        "tests/shop/test_prices.py",
        "tests/shop/test_rebate.py",  # names what is gone
        "tests/shop/test_cart_page.py",
    ]


def test_a_file_that_is_gone_chooses_who_still_names_it(root: Path) -> None:
    (root / "platform/shop/people.py").unlink()
    assert set(chosen(root).near) == files("shop/test_people_page", "shop/test_everybody", "shop/test_everyone")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([], id="not added"),
        pytest.param([["add", "."]], id="added"),
        pytest.param([["add", "."], ["commit", "-qm", "New"]], id="committed on the branch"),
    ],
)
def test_a_new_test_file_is_chosen(root: Path, steps: list[list[str]]) -> None:
    (root / "tests/shop/test_new.py").write_text("def test_it():\n    assert 1\n")
    for step in steps:
        git(root, *step)
    assert chosen(root) == Chosen(["tests/shop/test_new.py"])


def test_on_main_the_last_commit_is_the_change(root: Path) -> None:
    git(root, "checkout", "-q", "main")
    (root / "tests/shop/test_rebate.py").write_text("def test_it():\n    assert 1\n")
    git(root, "commit", "-qam", "Less")
    assert chosen(root) == Chosen(["tests/shop/test_rebate.py"])


def test_another_base_can_be_named(root: Path) -> None:
    for name in ("test_rebate.py", "test_page.py"):
        (root / "tests/shop" / name).write_text("def test_it(): ...\n")
        git(root, "commit", "-qam", name)
    assert set(chosen(root).near) == files("shop/test_rebate", "shop/test_page")
    assert set(chosen(root, "HEAD~1").near) == files("shop/test_page")
    with pytest.raises(GitError, match="no commit 'nowhere'"):
        chosen(root, "nowhere")


def test_a_package_that_holds_no_more_than_its_docstring_chooses_nothing(root: Path) -> None:
    (root / "platform/shop/web").mkdir()
    (root / "platform/shop/web/__init__.py").write_text('"""The pages of a shop."""\n')
    assert chosen(root) == Chosen()


def test_nothing_changed_chooses_nothing(root: Path) -> None:
    assert chosen(root) == Chosen()
