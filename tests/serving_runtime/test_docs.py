"""The reference page lists the flags and metrics that there are, all of them and no others."""

import re
from pathlib import Path

from serving_runtime.config.support import HONOURED
from serving_runtime.server import options
from serving_runtime.telemetry.exposition import render

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "serving-runtime.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_flag_is_listed_and_nothing_else() -> None:
    parser = options._parser()
    flags = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    assert set(re.findall(r"`(--[a-z-]+)`", section("Flags"))) == flags


def test_every_metric_is_listed_with_its_kind_and_nothing_else() -> None:
    kinds = dict(re.findall(r"# TYPE (\S+) (\S+)", render([])))
    assert dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section("Metrics"), re.MULTILINE)) == kinds


def test_every_honoured_field_is_listed() -> None:
    listed = section("Model repository")
    top = {field.partition(".")[0] for field in HONOURED} - {"response_cache"}
    assert [field for field in sorted(top) if f"`{field}" not in listed] == []
