"""docs/reference/cli.md says what the command line does, and the CI examples are files that CI systems take."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.errors import EXIT_CODES
from fairlead_cli.parser.reference import page

DOCS = Path(__file__).parents[3] / "docs"
CI = (DOCS / "how-to" / "roll-out-from-ci.md").read_text(encoding="utf-8")


def test_the_page_is_the_one_that_the_commands_make() -> None:
    written = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == page(), "write it anew: python -m fairlead_cli.parser.reference > docs/reference/cli.md"


def examples() -> dict[str, str]:
    """Return the CI files of the page by name."""
    return dict(re.findall(r"`(\.git[\w./-]+\.ya?ml)`:\n```yaml\n(.*?)```", CI, re.DOTALL))


@pytest.mark.parametrize(
    ("name", "schema"), [(".github/workflows/rollout.yml", "github-workflows"), (".gitlab-ci.yml", "gitlab-ci")]
)
def test_the_ci_examples_are_what_these_systems_take(name: str, schema: str, tmp_path: Path) -> None:
    file = tmp_path / Path(name).name
    file.write_text(examples()[name], encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_exit_codes_are_all_there() -> None:
    assert set(map(int, re.findall(r"^\| (\d+) \|", CI, re.MULTILINE))) == {*EXIT_CODES} - {2, 130}
