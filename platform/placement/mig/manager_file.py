"""MIG manager configuration: a repartition as mig-parted's file, and as the node's labels. Pure.

Source: mig-parted's configuration, version v1; NVIDIA GPU Operator, "GPU Operator with MIG" (the labels). The file also
lists GPUs that stay as they are, since MIG manager applies a configuration to the whole node.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from placement.mig.layouts import Layout

CONFIG_LABEL = "nvidia.com/mig.config"
STATE_LABEL = "nvidia.com/mig.config.state"
SUCCESS, FAILED = "success", "failed"


def configuration(after: Sequence[Layout]) -> dict[str, Any]:
    """Return the file for a node with these layouts; it has one configuration, `config_name`."""
    devices: dict[Layout, list[int]] = {}
    for index, layout in enumerate(after):
        devices.setdefault(layout, []).append(index)
    entries = [
        {"devices": indices, "mig-enabled": bool(layout), "mig-devices": dict(layout)}
        for layout, indices in devices.items()
    ]
    return {"version": "v1", "mig-configs": {config_name(after): entries}}


def config_name(after: Sequence[Layout]) -> str:
    """Return the name of a configuration: equal layouts have equal names."""
    return f"fairlead-{hashlib.sha256(json.dumps(list(after)).encode()).hexdigest()[:10]}"
