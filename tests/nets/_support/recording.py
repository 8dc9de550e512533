"""Compares snapshots with the files in `recorded/`."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from tests._support.golden import check_text

ROOT = Path(__file__).resolve().parents[3]
RECORDED = Path(__file__).parents[1] / "recorded"


def check(name: str, what: str, lines: Iterable[str]) -> None:
    """Compare the lines with a recorded file, byte for byte."""
    check_text(RECORDED / name, what, "".join(f"{line}\n" for line in lines))


def check_shrinks(name: str, found: Collection[str], remedy: str, folder: Path = RECORDED) -> None:
    """Compare violations with the recorded list, which may only shrink.

    `make golden` writes the list again only if it does not get longer, so that moved modules keep their violations and
    no new ones come in.
    """
    file = folder / name
    listed = file.read_text().splitlines() if file.exists() else None
    if os.environ.get("FAIRLEAD_UPDATE_GOLDEN") == "1" and (listed is None or len(found) <= len(listed)):
        file.write_text("".join(f"{line}\n" for line in sorted(found)))
        listed = sorted(found)
    before = set(listed or ())
    new, gone = sorted(set(found) - before), sorted(before - set(found))
    assert not new, f"{len(new)} new, {remedy}:\n" + "\n".join(new)
    assert not gone, f"{len(gone)} of {name} are gone; `make golden` takes them off the list:\n" + "\n".join(gone)
