"""Argo CD's settings for Fairlead's kinds, out of Lua files; `python -m tests.charts.argo_cd` writes them."""

import sys

import yaml

from tests.charts.chart import CHART
from tests.charts.readable import Readable

FOLDER = CHART / "files" / "argo-cd"
SETTINGS = FOLDER / "argocd-cm.yaml"
KINDS = ("InferenceService", "ModelVersion", "Rollout", "RolloutPolicy")
ACTIONS = ("promote", "abort", "retry")
_NOTE = (
    "# A patch to the ConfigMap argocd-cm of Argo CD.\n"
    "# Generated out of health.lua and actions/ by tests/charts/argo_cd.py\n"
)


def settings() -> dict[str, str]:
    """Return the entries of `argocd-cm`, by their keys."""
    health = (FOLDER / "health.lua").read_text()
    found = {f"resource.customizations.health.fairlead.dev_{kind}": health for kind in KINDS}
    actions = {
        "discovery.lua": (FOLDER / "actions" / "discovery.lua").read_text(),
        "definitions": [
            {"name": name, "action.lua": (FOLDER / "actions" / f"{name}.lua").read_text()} for name in ACTIONS
        ],
    }
    found["resource.customizations.actions.fairlead.dev_Rollout"] = _text(actions)
    return found


def patch() -> str:
    """Return the patch to the ConfigMap."""
    return _NOTE + _text({"data": settings()})


def _text(document: object) -> str:
    return yaml.dump(document, Dumper=Readable, sort_keys=False, width=160)


def main() -> int:
    """Write the file."""
    SETTINGS.write_text(patch())
    return 0


if __name__ == "__main__":
    sys.exit(main())
