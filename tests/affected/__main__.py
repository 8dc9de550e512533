"""Print, or run, the test files that a change can affect: `make test CHANGED=1`.

usage: python -m tests.affected [1|all|REF...] [--run PYTEST...]

The change is what differs from the commit where the branch left main (on main: from the commit before), or from REF,
uncommitted and untracked files included. `all` chooses also what is reached only through a process. Without --run the
files are printed; what was left out and why goes to the error output.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.affected import suites
from tests.affected.cache import Cache
from tests.affected.changes import GitError, Repository
from tests.affected.files import TEMPLATES
from tests.affected.selection import Chosen, Tree, select

ROOT = Path(__file__).resolve().parents[2]
_NO_TESTS = 5
NAMED = 12
"""How many of the files that are left out are named."""


def main(arguments: Sequence[str]) -> int:
    words, command = _split(arguments)
    far = "all" in words
    began = time.monotonic()
    repository = Repository(ROOT)
    try:
        base = repository.base(next((word for word in words if word not in ("1", "all")), None))
        changes = repository.changes(base)
    except GitError as error:
        print(f"What changed is not known: {error}.", file=sys.stderr)
        return 2
    chosen = select(changes, tree_of(repository))
    files = suites.of_python(chosen.near + (chosen.far if far else []), repository.read)
    print(
        f"{len(changes)} changed files since {base[:10]}; chosen in {time.monotonic() - began:.1f} s.", file=sys.stderr
    )
    for line in report(chosen, repository.read, far=far):
        print(line, file=sys.stderr)
    if not command:
        print("\n".join(files))
        return 0
    return _run(command, [] if chosen.everything else files) if files else 0


def report(chosen: Chosen, read: suites.Reader, *, far: bool) -> Iterator[str]:
    """Yield the lines that say what was chosen and what was left out, and how the rest is run."""
    if chosen.everything:
        yield f"Every test: {chosen.everything}."
        return
    near, only_far = suites.of_python(chosen.near, read), suites.of_python(chosen.far, read)
    yield f"{len(near)} test files of the Python suite use it." if near else "No test file of the Python suite uses it."
    if only_far and far:
        yield f"{len(only_far)} more reach it only through a process."
    elif only_far:
        more = f" and {len(only_far) - NAMED} more" if len(only_far) > NAMED else ""
        named = " ".join(only_far[:NAMED])
        yield f"Left to CI, as they reach it only through a process (CHANGED=all runs them): {named}{more}."
    for suite, files in (
        ("browser", suites.of_browser([*chosen.near, *chosen.far])),
        ("cluster", suites.of_cluster([*chosen.near, *chosen.far], read)),
    ):
        if files:
            yield f'Not run, of the {suite} suite, nearest first: make test FILE="{" ".join(files)}"'


def tree_of(repository: Repository) -> Tree:
    """Read a work tree."""
    paths = repository.paths()
    with Cache(ROOT / ".pytest_cache" / "affected") as cache:
        sources = {path: cache.read(path, repository.read(path) or "") for path in paths if path.endswith(".py")}
    return Tree(sources, {path: repository.read(path) or "" for path in paths if path.startswith(TEMPLATES)}, paths)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after --run."""
    words = [*arguments, "--run"]
    place = words.index("--run")
    return words[:place], words[place + 1 : -1]


def _run(command: Sequence[str], files: Sequence[str]) -> int:
    """Run pytest; that the marks leave none of the tests in the files is no failure."""
    done = subprocess.run([*command, *files], cwd=ROOT, check=False)
    return 0 if done.returncode == _NO_TESTS else done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
