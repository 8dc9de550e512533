"""How the browser's tests are shared out among pytest-xdist's workers."""

import re

import pytest
from xdist.scheduler import LoadFileScheduling

PAGE = re.compile(r"::test_a_page_holds_for_everybody\[(.+?)-(empty|busy|error)\b")


class ByPage(LoadFileScheduling):
    """Keeps the tests of a file together; of the largest one those of a page, else one worker has it until the end."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        config.option.loadscopereorder = False  # the order is `longest_first`
        super().__init__(config, log)  # type: ignore[arg-type]

    def _split_scope(self, nodeid: str) -> str:
        found = PAGE.search(nodeid)
        return f"{super()._split_scope(nodeid)}::{found[1]}" if found else super()._split_scope(nodeid)


def longest_first(item: pytest.Item) -> tuple[bool, bool]:
    """Order: whole platforms first, since a worker that begins one last has the others wait for it; shared ones in a
    row."""
    return "whole" not in item.path.parts, "shared_platforms" not in getattr(item, "fixturenames", ())
