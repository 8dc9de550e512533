"""What the page on usage gives operators to copy, for tests that run it."""

import re
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "usage.md"


def access_log_settings() -> list[dict[str, Any]]:
    """Return the access log's settings of the EnvoyProxy."""
    settings: list[dict[str, Any]] = _object("EnvoyProxy")["spec"]["telemetry"]["accessLog"]["settings"]
    return settings


def backend_tls_policy() -> dict[str, Any]:
    """Return the policy by which gateways send with TLS."""
    return _object("BackendTLSPolicy")


def _object(kind: str) -> dict[str, Any]:
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    found: list[Any] = [yaml.safe_load(block) for block in blocks]
    (only,) = (each for each in found if isinstance(each, dict) and each.get("kind") == kind)
    return dict(only)
