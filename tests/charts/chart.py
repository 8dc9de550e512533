"""The chart as Helm's own engine renders it, for tests. `python -m tests.charts.chart` writes the golden files anew."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "fairlead"
GOLDEN = Path(__file__).with_name("golden")
VARIATIONS = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
RELEASE, NAMESPACE = "fairlead", "platform"
_MADE_UP = re.compile(r"^(  (?:secret-key|postgresql-password|database-url): )\S+$", re.MULTILINE)


def values(variation: str) -> Json:
    """Return the values of a variation in `ci/`."""
    found: Json = yaml.safe_load((CHART / "ci" / f"{variation}-values.yaml").read_text())
    return found


def rendered(given: Json, *, is_upgrade: bool = False, namespace: str = NAMESPACE) -> dict[str, str]:
    """Return the text of each template's output, NOTES.txt included; those that render nothing are left out."""
    with helm.Chart.load(CHART) as chart:
        made = chart.render(
            given,
            name=RELEASE,
            namespace=namespace,
            revision=2 if is_upgrade else 1,
            is_install=not is_upgrade,
            is_upgrade=is_upgrade,
        )
    return {name.removeprefix("fairlead/templates/"): text for name, text in made.items() if text.strip()}


def objects(given: Json, *, is_upgrade: bool = False) -> list[Json]:
    """Return every object that the chart makes of these values."""
    texts = rendered(given, is_upgrade=is_upgrade)
    return [
        each
        for name in sorted(texts)
        if name.endswith(".yaml")
        for each in yaml.safe_load_all(texts[name])
        if each is not None
    ]


def pods(found: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the name of each object that makes pods, and a pod's spec."""
    for each in found:
        if each["kind"] == "Pod":
            yield each["metadata"]["name"], each["spec"]
        elif "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def golden(variation: str) -> str:
    """Return what the golden file of a variation has to say; what is made up anew each time is left out.

    Dashboards are kept as they are in the chart, and named here only.
    """
    texts = rendered(values(variation))
    texts["monitoring/dashboards.yaml"] = re.sub(
        r"^  (fairlead-\S+\.json): \|\n(?:    .*\n?)+",
        r"  \1: ...\n",
        texts.get("monitoring/dashboards.yaml", ""),
        flags=re.M,
    )
    parts = (f"# {name}\n{texts[name].strip()}\n" for name in sorted(texts) if texts[name].strip())
    return _MADE_UP.sub(r"\1(made up)", "\n".join(parts))


def main() -> int:
    """Write the golden files anew."""
    for variation in VARIATIONS:
        (GOLDEN / f"{variation}.yaml").write_text(golden(variation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
