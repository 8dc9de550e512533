"""The chart as Helm's own engine renders it, for tests. `python -m tests.charts.chart` writes the golden files.

Of the base, a variation with all parts, the golden file is the text; of the others, the structural difference of what
the text says: objects by template, and the text of NOTES.txt.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

from tests._support.golden import difference_file
from tests._support.structural.difference import difference
from tests._support.structural.layout import written

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "fairlead"
MEMBER = ROOT / "charts" / "fairlead-member"
GOLDEN = Path(__file__).with_name("golden")
VARIATIONS = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
BASE = "trial"
RELEASE, NAMESPACE = "fairlead", "platform"
_MADE_UP = re.compile(
    r"^(  (?:secret-key|postgresql-password|database-url|redis\.conf|broker-url): )\S+$", re.MULTILINE
)

_LOOKUP = 'lookup "v1" .kind .root.Release.Namespace .name'
_IN_A_FILE = 'get (.root.Files.Get "files/there.json" | fromJson) (printf "%s/%s" .kind .name)'


def values(variation: str) -> Json:
    """Return the values of a variation in `ci/`."""
    found: Json = yaml.safe_load((CHART / "ci" / f"{variation}-values.yaml").read_text())
    return found


def rendered(
    given: Json, *, is_upgrade: bool = False, namespace: str = NAMESPACE, chart_folder: Path = CHART
) -> dict[str, str]:
    """Return the text of each template's output, NOTES.txt included; those that render nothing are left out."""
    with helm.Chart.load(chart_folder) as chart:
        made = chart.render(
            given,
            name=RELEASE,
            namespace=namespace,
            revision=2 if is_upgrade else 1,
            is_install=not is_upgrade,
            is_upgrade=is_upgrade,
        )
    return {name.partition("/templates/")[2]: text for name, text in made.items() if text.strip()}


def objects(given: Json, *, is_upgrade: bool = False, chart_folder: Path = CHART) -> list[Json]:
    """Return every object that the chart makes of these values."""
    texts = rendered(given, is_upgrade=is_upgrade, chart_folder=chart_folder)
    return [
        each
        for name in sorted(texts)
        if name.endswith(".yaml")
        for each in yaml.safe_load_all(texts[name])
        if each is not None
    ]


def chart_where(folder: Path, there: Json) -> Path:
    """Return a copy of the chart that finds these objects, by kind and name, in the place of a cluster's."""
    made = folder / "fairlead"
    shutil.copytree(CHART, made)
    helpers = made / "templates" / "_helpers.tpl"
    text = helpers.read_text()
    assert text.count(_LOOKUP) == 1
    helpers.write_text(text.replace(_LOOKUP, _IN_A_FILE))
    (made / "files" / "there.json").write_text(json.dumps(there))
    return made


def pods(found: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the name of each object that makes pods, and a pod's spec."""
    for each in found:
        if each["kind"] == "Pod":
            yield each["metadata"]["name"], each["spec"]
        elif "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def own(containers: Iterable[Json]) -> list[Json]:
    """Return the chart's own containers; those that variations add have images of an example's registry."""
    return [each for each in containers if not each["image"].startswith("registry.example.com/")]


def texts(variation: str) -> dict[str, str]:
    """Return what golden files compare of each template; what is made up each time is left out.

    Dashboards are kept as they are in the chart, and named here only.
    """
    found = rendered(values(variation))
    found["monitoring/dashboards.yaml"] = re.sub(
        r"^  (fairlead-\S+\.json): \|\n(?:    .*\n?)+",
        r"  \1: ...\n",
        found.get("monitoring/dashboards.yaml", ""),
        flags=re.M,
    )
    return {name: _MADE_UP.sub(r"\1(made up)", text.strip()) for name, text in sorted(found.items()) if text.strip()}


def golden(variation: str) -> str:
    """Return the text of all templates."""
    return "\n".join(f"# {name}\n{text}\n" for name, text in texts(variation).items())


def tree(variation: str) -> Json:
    """Return the objects of each template, and the text of NOTES.txt."""
    return {
        name: list(yaml.safe_load_all(text)) if name.endswith(".yaml") else text
        for name, text in texts(variation).items()
    }


def main() -> int:
    """Write the golden files."""
    (GOLDEN / f"{BASE}.out.yaml").write_text(golden(BASE))
    for variation in VARIATIONS:
        if variation != BASE:
            difference_file(GOLDEN, variation).write_text(written(difference(tree(BASE), tree(variation))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
