"""Follows a page of the documentation to the letter: its commands run in the page's order, in a person's shell.

A block `sh` is commands, each of which has to succeed. A block `console` is commands after `$ ` with what they print,
of which `...` stands for anything. A block of another language after "Write `NAME`:" becomes that file in the shell's
folder.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
_WRITE = re.compile(r"\b[Ww]rite `([\w.-]+)`[^\n`]*:\n+ *\Z")
_LONGEST_S = 1200
FROM_NOTHING = "From nothing to a canary"
"""A part of the page about installing on Kubernetes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command with what it is to print, or a file to write.

    Attributes:
        text: commands of the shell, or the file's content.
        file: the file's name; empty for commands.
        printed: what the commands print, where the page shows it.
    """

    text: str
    file: str = ""
    printed: str = ""


def steps(page: str) -> Iterator[Step]:
    """Yield the steps of a page, in its order."""
    for found in _BLOCK.finditer(page):
        text = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        written = _WRITE.search(page, endpos=found.start())
        if found["language"] == "sh":
            yield Step(text)
        elif found["language"] == "console":
            yield from _shown(text)
        elif written:
            yield Step(text, file=written[1])


def _shown(text: str) -> Iterator[Step]:
    """Yield the commands of a `console` block; a line that ends with a backslash goes on."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, printed = re.match(r"((?:[^\n]*\\\n)*[^\n]*\n?)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        yield Step(command, printed=printed)


def is_as_shown(shown: str, printed: str) -> bool:
    """Return whether a command printed what its page shows; blanks between words count for nothing."""
    parts = [r"\s+".join(map(re.escape, part.split())) for part in shown.split("...")]
    return re.fullmatch(r"\s*" + r"\s*.*?\s*".join(parts) + r"\s*", printed, re.DOTALL) is not None


@dataclass
class Shell:
    """A person's shell in a folder."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, commands: str) -> str:
        """Return what commands print; each of them must succeed."""
        done = self._done(commands)
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def fails(self, commands: str) -> str:
        """Return what commands complain of, one of which must fail."""
        done = self._done(commands)
        assert done.returncode != 0, f"{commands}\n{done.stdout}"
        return done.stderr

    def _done(self, commands: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )


@dataclass
class Page:
    """A page that is being followed."""

    name: str
    shell: Shell
    steps: list[Step]
    filled: Mapping[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def follow(self, count: int = 1) -> str:
        """Take the next steps, and return what they print."""
        return "".join(self._take() for _ in range(count))

    def follow_the_rest(self) -> str:
        """Take all steps that are left, and return what they print."""
        return self.follow(len(self.steps))

    def _take(self) -> str:
        assert self.steps, f"{self.name} has no more steps"
        step = self.steps.pop(0)
        text = self._with_what_is_filled_in(step.text)
        if step.file:
            (self.shell.folder / step.file).write_text(text)
            return ""
        printed = self.shell.run(text)
        if step.printed:
            shown = self._with_what_is_filled_in(step.printed)
            assert is_as_shown(shown, printed), f"{self.name}: {text}\nshows\n{shown}\nand prints\n{printed}"
        return printed

    def _with_what_is_filled_in(self, text: str) -> str:
        for word, own in self.filled.items():
            if word in text:
                self._used.add(word)
                text = text.replace(word, own)
        return text

    def is_over(self) -> None:
        """Fail where a step was not taken, or nothing was filled in where a test says so."""
        assert self.steps == [], f"{self.name} has steps that its test does not take"
        assert self._used == set(self.filled), f"{self.name} does not say {set(self.filled) - self._used}"


def part(text: str, heading: str) -> str:
    """Return the part of a page below a heading `## HEADING`, up to the next."""
    _, found, below = text.partition(f"\n## {heading}\n")
    assert found, f"no part {heading!r}"
    return below.partition("\n## ")[0]


def opened(
    page: str, shell: Shell, filled: Mapping[str, str] | None = None, *, only: str = "", without: str = ""
) -> Page:
    """Return a page to follow.

    Args:
        page: its name below `docs/`.
        filled: what a reader fills in for words of the page, such as names of hosts.
        only: the heading of the one part that is followed.
        without: the heading of a part that is left out.
    """
    text = (ROOT / "docs" / page).read_text()
    text = part(text, only) if only else text
    text = text.replace(part(text, without), "") if without else text
    return Page(page, shell, list(steps(text)), filled or {})


@contextmanager
def followed(page: str, shell: Shell, filled: Mapping[str, str] | None = None, *, without: str = "") -> Iterator[Page]:
    """Give a page to follow from its first step to its last; the arguments are those of `opened`."""
    made = opened(page, shell, filled, without=without)
    yield made
    made.is_over()


def tool(place: Path, command: Sequence[str] | str) -> None:
    """Make a program: a script, or one that is another command line's beginning."""
    text = command if isinstance(command, str) else "#!/bin/sh\nexec " + " ".join(command) + ' "$@"\n'
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
