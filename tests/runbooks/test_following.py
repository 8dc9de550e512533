"""What follows the pages notices where a page and the product part."""

from pathlib import Path

import pytest

from tests.runbooks.following import ROOT, Page, Shell, Step, is_as_shown, steps

PAGE = """
1. Write `a.yaml`, with your names:

   ```yaml
   host: HOST
   ```

2. Then:

   ```sh
   cat a.yaml
   ```

```console
$ echo one \\
    two
one two
$ echo three
```

```yaml
an: example
```
"""


def page(text: str, folder: Path) -> Page:
    return Page("a page", Shell(folder, {"PATH": "/usr/bin:/bin"}), list(steps(text)), {"HOST": "db"})


def follow_all(made: Page) -> None:
    made.follow_the_rest()
    made.is_over()


def test_files_and_commands_of_a_page_are_its_steps() -> None:
    assert list(steps(PAGE)) == [
        Step("host: HOST\n", file="a.yaml"),
        Step("cat a.yaml\n"),
        Step("echo one \\\n    two\n", printed="one two\n"),
        Step("echo three\n"),
    ]


def test_a_page_that_tells_the_truth_is_followed_to_its_end(tmp_path: Path) -> None:
    made = page(PAGE, tmp_path)
    assert made.follow(2) == "host: db\n"
    assert made.follow_the_rest() == "one two\nthree\n"
    made.is_over()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("```sh\necho HOST; false; true\n```\n", "false", id="a command that fails"),
        pytest.param("```console\n$ echo HOST\nother\n```\n", "shows", id="another output"),
        pytest.param("```sh\ntrue\n```\n", "does not say {'HOST'}", id="a word that is not there to fill in"),
    ],
)
def test_a_page_that_does_not_is_found_out(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=said):
        follow_all(page(text, tmp_path))


def test_a_step_that_is_left_out_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="steps that its test does not take"):
        page(PAGE, tmp_path).is_over()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("NAME   AGE\na ...", "NAME  AGE\na     3s\n", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a", "a b", False),
        ("", "", True),
    ],
)
def test_outputs_are_compared_word_by_word(shown: str, printed: str, same: bool) -> None:
    assert is_as_shown(shown, printed) is same


def test_every_runbook_is_followed_by_a_test() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    pages = {f"runbooks/{path.name}" for path in (ROOT / "docs" / "runbooks").glob("*.md")}
    how_tos = ("back-up-and-restore", "add-a-cluster", "install-on-kubernetes", "install-with-kustomize")
    pages |= {f"how-to/{name}.md" for name in how_tos}
    assert [page for page in sorted(pages) if f'followed("{page}"' not in sources] == []
