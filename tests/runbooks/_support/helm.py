"""`helm upgrade --install` without a cluster: the chart is rendered by Helm's own engine, its values by its schema.

Usage: python -m tests.runbooks._support.helm upgrade --install NAME CHART --namespace NAMESPACE --values FILE ...

Writes `rendered.yaml`, what the cluster would get.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml


def main(arguments: Sequence[str]) -> int:
    """Render; options that only matter on a cluster are accepted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["upgrade"])
    parser.add_argument("name")
    parser.add_argument("chart", type=Path)
    parser.add_argument("--install", action="store_true", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--values", type=Path, action="append", default=[])
    for option in ("--create-namespace", "--wait"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--timeout")
    given = parser.parse_args(arguments)
    values: dict[str, Any] = {}
    for file in given.values:
        values = merged(values, yaml.safe_load(file.read_text()))
    with helm.Chart.load(given.chart) as chart:
        chart.validate_schema(values)
        made = chart.render(values, name=given.name, namespace=given.namespace, revision=1, is_install=True)
    Path("rendered.yaml").write_text("\n---\n".join(text for name, text in made.items() if name.endswith(".yaml")))
    return 0


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as Helm merges two files of them: mapping by mapping, and the later one wins."""
    both = {
        key: merged(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping)
    }
    return {**below, **above, **both}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
