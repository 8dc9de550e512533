"""Kubeconfigs with the files that they name in them."""

import base64
import json
from pathlib import Path
from typing import Any


def flat(kubeconfig: Path) -> dict[str, Any]:
    """Return a kubeconfig with the content of the files that it names, as `kubectl config view --flatten` does."""
    content: dict[str, Any] = json.loads(kubeconfig.read_text())
    for each in (
        *(cluster["cluster"] for cluster in content["clusters"]),
        *(user["user"] for user in content["users"]),
    ):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in each:
                each[f"{name}-data"] = base64.b64encode(Path(each.pop(name)).read_bytes()).decode()
    return content
