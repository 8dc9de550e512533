"""What is generated in `kustomize/` out of the chart; `python -m tests.charts.kustomize` writes it anew.

The base is the chart with database and broker of one's own. A component is what the chart makes more of its values, or
makes otherwise. Helm's hooks become Jobs that go by themselves, so that the next `kubectl apply` makes them anew.
"""

import re
import sys
from collections.abc import Iterator, Mapping

import yaml

from tests.charts.chart import RELEASE, ROOT, Json, rendered
from tests.charts.readable import Readable
from tests.releases.record import version

FOLDER = ROOT / "kustomize"
NAMESPACE = "fairlead"
BASE: Json = {
    "url": "https://fairlead.example.com",
    "argoCD": True,  # its annotations, which kubectl and Flux leave alone
    "existingSecret": "fairlead-servers",
    "postgresql": {"enabled": False},
    "redis": {"enabled": False},
    "cluster": {
        "gateway": {"url": "https://models.example.com"},
        "namespaces": [NAMESPACE],
        "modelCache": "none",  # another source of models replaces all pods of services; a component has it
        "file": {"jobs": {"namespace": NAMESPACE}},
    },
    "monitoring": {"namespaces": ["monitoring"]},
    "networkPolicy": {"models": "open"},
    "telemetry": {"logs": "text"},
}
COMPONENTS: Mapping[str, Json] = {
    "closed-network": {"networkPolicy": {"models": "closed"}},
    "gpu": {
        "cluster": {
            **BASE["cluster"],
            "file": {**BASE["cluster"]["file"], "gpuRuntimeImage": f"fairlead/serving-runtime:{version()}-cuda"},
        }
    },
    "gpu-claims": {
        "cluster": {
            **BASE["cluster"],
            "file": {
                **BASE["cluster"]["file"],
                "gpuRuntimeImage": f"fairlead/serving-runtime:{version()}-cuda",
                "gpuAllocation": "claims",
            },
        }
    },
    "model-cache": {"cluster": {**BASE["cluster"], "modelCache": "50Gi"}},
    "monitoring": {
        "monitoring": {
            **BASE["monitoring"],
            "monitors": True,
            "alerts": True,
            "dashboards": True,
            "adapterRules": True,
        }
    },
    "tls": {"expose": {"kind": "ingress", "tls": {"issuer": {"name": "fairlead"}}}},
    "trial-servers": {"postgresql": {"enabled": True}, "redis": {"enabled": True}},
    "waker": {"waker": {"enabled": True}},
    "usage-collector": {"usage": {"collector": {"enabled": True, "existingSecret": "usage-collector"}}},
}
_HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
_OF_NAMESPACES = "fairlead/models"
"""Remembers for upgrades by Helm which namespaces the release has; an overlay has one."""
_JOBS_STAY_S = 600
_FLUX_MAKES_AGAIN = {"kustomize.toolkit.fluxcd.io/force": "enabled"}
"""A Job cannot be changed; Flux then makes it again."""
Key = tuple[str, str]


def objects(values: Json) -> dict[Key, Json]:
    """Return what the chart makes of `values` without Helm's own, by kind and name; the namespace is an overlay's."""
    found = {}
    for name, text in rendered(values, namespace=NAMESPACE).items():
        if name.endswith(".yaml"):
            for each in yaml.safe_load_all(text):
                if each is not None and (made := without_helm(each)) is not None:
                    found[made["kind"], made["metadata"]["name"]] = made
    return dict(sorted(found.items()))


def without_helm(made: Json) -> Json | None:
    """Return an object as it is without Helm; None for what only Helm runs, or reads."""
    metadata = made["metadata"]
    hook = metadata.get("annotations", {}).get("helm.sh/hook", "")
    if hook == "test" or (made["kind"], metadata["name"]) == ("ConfigMap", f"{RELEASE}-defaults"):
        return None
    metadata["annotations"] = {
        name: value
        for name, value in metadata.get("annotations", {}).items()
        if not name.startswith("helm.sh/") and name != _OF_NAMESPACES
    }
    if not metadata["annotations"]:
        del metadata["annotations"]
    for name in _HELMS:
        metadata.get("labels", {}).pop(name, None)
    if made["kind"] == "Job":
        # An overlay changes what it runs, so a name by its content would be a wrong one.
        metadata["name"] = re.sub(r"-migrations-\w+$", "-migrations", metadata["name"])
        metadata["annotations"] = {**metadata.get("annotations", {}), **_FLUX_MAKES_AGAIN}
        made["spec"]["ttlSecondsAfterFinished"] = _JOBS_STAY_S
    return made


def files() -> Iterator[tuple[str, str]]:
    """Yield the path below `kustomize/` and the content of every file that is generated."""
    base = objects(BASE)
    yield "base/fairlead.yaml", _text(base.values())
    for name, more in COMPONENTS.items():
        found = objects({**BASE, **more})
        assert base.keys() <= found.keys(), f"{name} takes something away"
        if new := [each for key, each in found.items() if key not in base]:
            yield f"components/{name}/resources.yaml", _text(new)
        if changed := [each for key, each in found.items() if key in base and base[key] != each]:
            yield f"components/{name}/patches.yaml", _text(_changes(base, each) for each in changed)


def _changes(base: Mapping[Key, Json], changed: Json) -> Json:
    """Return a merge patch to an object, of the entries at its top that differ."""
    before = base[changed["kind"], changed["metadata"]["name"]]
    names = {"apiVersion": changed["apiVersion"], "kind": changed["kind"]}
    different = {key: value for key, value in changed.items() if before.get(key) != value}
    return {**names, "metadata": {"name": changed["metadata"]["name"], "namespace": NAMESPACE}, **different}


def _text(documents: object) -> str:
    note = "# Generated out of the chart: python -m tests.charts.kustomize\n"
    return note + yaml.dump_all(documents, Dumper=Readable, sort_keys=False, width=160)


def main() -> int:
    """Write the files again."""
    for path, text in files():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
