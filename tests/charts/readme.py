"""The chart's README, made of Chart.yaml and the comments in values.yaml; `python -m tests.charts.readme` writes it."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from tests.charts.chart import CHART

_COMMENT = "# -- "
_LEAD = """# {name}

{description}.

Version {version}. [Install on Kubernetes](../../docs/how-to/install-on-kubernetes.md) tells how to use it.

```sh
helm upgrade --install fairlead charts/fairlead --namespace fairlead --create-namespace --values my-values.yaml --wait
```

`values.schema.json` checks every value; one that is not in this table is refused by its name. Examples are in `ci/`.

| value | default | meaning |
| --- | --- | --- |
"""


def commented() -> Iterator[tuple[str, str]]:
    """Yield the dotted name of each value that has a comment, and the comment."""
    path: list[tuple[int, str]] = []
    comment = ""
    for line in (CHART / "values.yaml").read_text().splitlines():
        stripped = line.strip()
        if stripped.startswith(_COMMENT):
            comment = stripped.removeprefix(_COMMENT)
        elif found := re.match(r"^( *)(\w+):", line):
            depth = len(found[1])
            path = [each for each in path if each[0] < depth] + [(depth, found[2])]
            if comment:
                yield ".".join(name for _, name in path), comment
                comment = ""


def readme() -> str:
    """Return the README."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = (f"| `{name}` | `{_shown(_at(values, name))}` | {comment} |\n" for name, comment in commented())
    return _LEAD.format(**chart) + "".join(rows)


def _at(values: Any, name: str) -> Any:
    for part in name.split("."):
        values = values[part]
    return values


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def main() -> int:
    """Write the README."""
    (CHART / "README.md").write_text(readme())
    return 0


if __name__ == "__main__":
    sys.exit(main())
