"""The charts' READMEs of Chart.yaml and the comments in values.yaml; `python -m tests.charts.readme` writes them."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.charts.chart import CHART, MEMBER

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
_MEMBER_LEAD = """# {name}

{description}.

Version {version}. [Add a Kubernetes cluster](../../docs/how-to/add-a-cluster.md#by-the-chart) describes its use.

```sh
helm upgrade --install fairlead-member charts/fairlead-member -n fairlead-access --create-namespace -f values.yaml
```

`values.schema.json` checks every value; one that is not in this table is refused by its name.

| value | default | meaning |
| --- | --- | --- |
"""
_LEADS = {CHART: _LEAD, MEMBER: _MEMBER_LEAD}


def commented(chart: Path = CHART) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of each value that has a comment, and the comment."""
    path: list[tuple[int, str]] = []
    comment = ""
    for line in (chart / "values.yaml").read_text().splitlines():
        stripped = line.strip()
        if stripped.startswith(_COMMENT):
            comment = stripped.removeprefix(_COMMENT)
        elif found := re.match(r"^( *)(\w+):", line):
            depth = len(found[1])
            path = [each for each in path if each[0] < depth] + [(depth, found[2])]
            if comment:
                yield ".".join(name for _, name in path), comment
                comment = ""


def readme(chart: Path = CHART) -> str:
    """Return the README."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    rows = (f"| `{name}` | `{_shown(_at(values, name))}` | {comment} |\n" for name, comment in commented(chart))
    return _LEADS[chart].format(**about) + "".join(rows)


def _at(values: Any, name: str) -> Any:
    for part in name.split("."):
        values = values[part]
    return values


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def main() -> int:
    """Write the READMEs."""
    for chart in _LEADS:
        (chart / "README.md").write_text(readme(chart))
    return 0


if __name__ == "__main__":
    sys.exit(main())
