"""Pins of a lock file."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return dict(_PIN.findall((ROOT / "requirements" / name).read_text()))
