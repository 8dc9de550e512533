"""Words that code, pages and documentation leave out: counted by room, and the counts may only shrink.

Data flows (returns, writes, sends), it does not speak; things are, they do not stand. Standard words are found by grep.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator

from tests.nets._support.recording import RECORDED, ROOT

WORDS = {
    "tell": r"tell(?!\(\))|tells|told|telling",  # say, return, send, report; `file.tell()` is Python's
    "anew": r"anew",  # again
    "whoever": r"whoever",
    "nobody": r"nobody",  # say what is, or "no one"
    "is asked": r"(?:is|are|was|were) asked",  # is requested, is called
    "stands": r"stands",  # is, means
    "wish": r"wish|wishes|wished",  # command, desired state
    "there is none": r"there (?:is|are) none",
}
_FOUND = {word: re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])", re.IGNORECASE) for word, pattern in WORDS.items()}
_TEXTS = (
    "platform/**/*.py",
    "releases/**/*.py",
    "serving_runtime/**/*.py",
    "frontend/templates/**/*.html",
    "docs/**/*.md",
    "README.md",
    "CONTRIBUTING.md",
)
_HISTORY = ("/migrations/", "/generated/", "docs/decisions/")
_LIST = RECORDED / "words.txt"


def places() -> Iterator[tuple[str, str, str]]:
    """Yield the room, the word and FILE:LINE of each place."""
    for file in sorted(path for pattern in _TEXTS for path in ROOT.glob(pattern)):
        name = str(file.relative_to(ROOT))
        if not any(part in name for part in _HISTORY):
            room = "/".join(name.split("/")[:-1][:2]) or "."
            for number, line in enumerate(file.read_text().splitlines(), 1):
                yield from ((room, word, f"{name}:{number}") for word in words_in(line))


def words_in(line: str) -> Iterator[str]:
    """Yield each listed word of a line, as often as it is there."""
    for word, pattern in _FOUND.items():
        yield from (word for _ in pattern.finditer(line))


def test_these_words_become_fewer() -> None:
    found = list(places())
    counts = Counter((room, word) for room, word, _ in found)
    listed = Counter({(line.split(": ")[0], line.split(": ")[1]): int(line.split(": ")[2]) for line in _lines()})
    more = {key for key, count in counts.items() if count > listed[key]}
    if os.environ.get("FAIRLEAD_UPDATE_GOLDEN") == "1" and (not listed or not more):
        _LIST.write_text("".join(f"{room}: {word}: {count}\n" for (room, word), count in sorted(counts.items())))
        return
    where = [f"{word} in {place}" for room, word, place in found if (room, word) in more]
    assert not more, "more than before; one of these is new, say it in other words:\n" + "\n".join(where)
    assert counts == listed, "fewer than before; `make golden` writes it down"


def _lines() -> list[str]:
    return _LIST.read_text().splitlines() if _LIST.exists() else []


def test_words_are_found_in_names_and_sentences_alone() -> None:
    text = "def is_told(): ...  # Nobody is asked; a fortelling wishlist."
    assert list(words_in(text)) == ["tell", "nobody", "is asked"]
