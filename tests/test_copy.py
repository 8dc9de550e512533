"""The one test of what pages say: `copy.txt` has the sentence of each test id, as its template has it.

Other tests find a sentence by its `data-testid`, so that changed words change one line of that file (`make golden`).
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

from tests._support.golden import check_text
from tests._support.page import Marked

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "frontend" / "templates"
COPY = Path(__file__).with_name("copy.txt")
LEAST_WORDS = 3
LOOK_FOR = {"get_by_text", "not_to_contain_text", "not_to_have_text", "see", "to_contain_text", "to_have_text"}
"""Functions whose arguments are words of a page; those that find a button or a field by its name are not."""
FINDERS = {"get_by_test_id", "marked"}
COMMAND = "fairlead "
"""Begins what is no prose: commands are a contract of their own."""
OTHERS_WORDS = {"still being checked": "an error of the API has them too"}


def _plain(template: str) -> str:
    """Return a template's text without its tags: a value is `…`, another case `|`, any other tag nothing."""
    template = re.sub(r"{#.*?#}", "", template, flags=re.DOTALL)
    template = re.sub(r"{%\s*(?:else|elif\b.*?)\s*%}", " | ", template)
    template = re.sub(r"{%\s*include\b.*?%}", "…", template)
    template = re.sub(r"{%.*?%}", "", template, flags=re.DOTALL)
    return re.sub(r"{{.*?}}", "…", template)


def sentences() -> Iterator[tuple[str, str, str]]:
    """Yield the template, the test id and the text of each element that has one."""
    for file in sorted(TEMPLATES.rglob("*.html")):
        for name, text in Marked(_plain(file.read_text())).found:
            yield str(file.relative_to(TEMPLATES)), name, text


@cache
def said_by_templates() -> str:
    """Return all texts of all templates, each without markup and with single spaces."""
    texts = []
    for file in TEMPLATES.rglob("*.html"):
        pieces = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", "\n", file.read_text(), flags=re.DOTALL).split("\n")
        texts += [" ".join(unescape(piece).split()) for piece in pieces]
    return "\n".join(text for text in texts if text)


@cache
def modules() -> dict[Path, ast.Module]:
    """Return all modules of tests and of what they share."""
    return {file: ast.parse(file.read_text()) for file in (ROOT / "tests").rglob("*.py")}


def looked_for(tree: ast.AST) -> Iterator[str]:
    """Yield the words that a test looks for on a page: in an assertion, a loop over words, or by Playwright."""
    for node in ast.walk(tree):
        wanted: list[ast.expr] = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            wanted = [node.left]
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Tuple | ast.List):
            wanted = node.iter.elts
        elif isinstance(node, ast.Call):
            wanted = node.args if _name(node) in LOOK_FOR else []
        for each in (part for one in wanted for part in ast.walk(one)):
            if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes):
                yield each.value if isinstance(each.value, str) else each.value.decode(errors="replace")


def _name(call: ast.Call) -> str:
    """Return the name of what is called, without the object it is of."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def prose(words: str) -> list[str]:
    """Return the parts of what a test looks for that are a template's words, of three words or more."""
    parts = (" ".join(unescape(part).split()) for part in re.split(r"<[^>]*>", words))
    long = [part for part in parts if len(part.split()) >= LEAST_WORDS and not part.startswith(COMMAND)]
    return [part for part in long if part in said_by_templates() and part not in OTHERS_WORDS]


def test_pages_say_what_they_said() -> None:
    lines = (f"{template} {name}: {text}\n" for template, name, text in sentences())
    check_text(COPY, "a page's text", "".join(sorted(lines)))


def test_each_test_id_is_used_and_each_used_one_is_there() -> None:
    there = {name for _, name, _ in sentences()}
    nodes = [node for tree in modules().values() for node in ast.walk(tree)]
    last = [node.args[-1] for node in nodes if isinstance(node, ast.Call) and _name(node) in FINDERS and node.args]
    used = {each.value for each in last if isinstance(each, ast.Constant)}
    assert there - used == set(), "no test looks for it"
    assert used - there == set(), "no template has it"


def test_a_test_id_is_of_one_sentence_of_a_template() -> None:
    counts = Counter((template, name) for template, name, text in sentences() if text)
    assert [each for each, count in counts.items() if count > 1] == []


def test_no_test_looks_for_a_pages_words() -> None:
    found = {
        f"{file.relative_to(ROOT)}: {words}"
        for file, tree in modules().items()
        for text in looked_for(tree)
        for words in prose(text)
    }
    assert found == set(), "give the sentence a data-testid and look for that"


def test_words_of_a_page_would_be_seen() -> None:
    words = "Give to this team"
    assert prose(words) == [words]
    for code in (
        f"assert '{words}' in page",
        f"assert not any(each in page for each in ('a', '{words}'))",
        f"for each in ['{words}']: assert each in page",
        f"page.get_by_text('{words}')",
        f"expect(page).to_contain_text(re.compile('{words}'))",
    ):
        assert words in list(looked_for(ast.parse(code))), code
    assert list(looked_for(ast.parse(f"page.get_by_role('button', name='{words}')"))) == []
