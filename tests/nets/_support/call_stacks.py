"""Modules on the call stacks of a program at the moments at which marked functions are called.

python -m tests.nets._support.call_stacks OUT MARKS MODULE ARGUMENTS: run a module, and write them, a line each, once it
has ended. MARKS are paths of modules with a function, such as `scheduler/scheduler.py:submit`, joined by commas.
"""

import runpy
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def recorded(folder: str, marks: Collection[str]) -> Iterator[set[str]]:
    """Record while the block runs, in its thread and in those that it starts.

    Args:
        folder: of the work tree; modules elsewhere are left out, and paths in marks and found ones begin below it.
    """
    root, found = f"{ROOT / folder}/", set[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or f"{path.removeprefix(root)}:{frame.f_code.co_name}" not in marks:
            return
        at: FrameType | None = frame
        while at is not None:
            if at.f_code.co_filename.startswith(root):
                found.add(at.f_code.co_filename.removeprefix(root))
            at = at.f_back

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def main() -> None:
    """Run the module that the command line names."""
    out, marks, module, *arguments = sys.argv[1:]
    sys.argv = [module, *arguments]
    with recorded(module, marks.split(",")) as found:
        try:
            runpy.run_module(module, run_name="__main__")
        finally:
            Path(out).write_text("".join(f"{each}\n" for each in sorted(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
