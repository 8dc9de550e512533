"""Argo CD's settings for Fairlead's kinds, out of Lua files; `python -m tests.charts.argo_cd` writes them."""

import sys

import yaml

from tests.charts.chart import CHART

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


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as such, and nothing by reference."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _written)


def _text(document: object) -> str:
    return yaml.dump(document, Dumper=_Readable, sort_keys=False, width=160)


def main() -> int:
    """Write the file."""
    SETTINGS.write_text(patch())
    return 0


if __name__ == "__main__":
    sys.exit(main())
