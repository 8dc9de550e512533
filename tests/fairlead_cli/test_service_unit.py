"""The systemd unit in the documentation calls the command as it is, and names settings that are read."""

import re
import shlex
from pathlib import Path

from fairlead_cli.__main__ import build_parser
from fairlead_cli.up.addresses import Address
from fairlead_cli.up.components import Inherited, components
from fairlead_cli.up.home import Home

DOCS = Path(__file__).resolve().parents[2] / "docs"


def unit() -> dict[str, list[str]]:
    """Return the unit's entries, each with all its values."""
    text = (DOCS / "how-to" / "run-as-a-service.md").read_text()
    block = text.partition("```ini\n")[2].partition("```")[0]
    entries: dict[str, list[str]] = {}
    for line in block.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            entries.setdefault(name, []).append(value)
    return entries


def test_the_unit_starts_up_with_options_there_are() -> None:
    program, *arguments = shlex.split(unit()["ExecStart"][0])
    assert program.endswith("/fairlead")
    options = build_parser().parse_args(arguments)
    assert options.command.words == "up"
    assert options.home == Path("/var/lib/fairlead/home")


def test_the_units_settings_are_documented_ones() -> None:
    documented = set(re.findall(r"^\| `(FAIRLEAD_\w+)`", (DOCS / "reference" / "settings.md").read_text(), re.M))
    assert {each.partition("=")[0] for each in unit()["Environment"]} <= documented


def test_systemd_waits_longer_than_the_platform_takes_to_end() -> None:

    address = Address("127.0.0.1", 1)
    parts = components(Home(Path("/home")), address, address, {}, Inherited(8, 9, 7))
    assert int(unit()["TimeoutStopSec"][0]) > sum(part.patience_s for part in parts)
