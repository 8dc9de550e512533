"""What the page on usage gives operators to copy, for tests that run it."""

import re
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "usage.md"


def access_log_settings() -> list[dict[str, Any]]:
    """Return the access log's settings of the EnvoyProxy."""
    blocks = re.findall(r"^   ```yaml\n(.*?)^   ```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    found = [yaml.safe_load(block) for block in blocks]
    (proxy,) = (each for each in found if each.get("kind") == "EnvoyProxy")
    settings: list[dict[str, Any]] = proxy["spec"]["telemetry"]["accessLog"]["settings"]
    return settings
