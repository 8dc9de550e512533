"""Charts that were released: today's takes their values, and can take over what they installed."""

from pathlib import Path

import helm_python as helm
import pytest
import yaml

from tests.charts.chart import CHART, NAMESPACE, RELEASE, ROOT, VARIATIONS, Json, objects, values

RELEASED = sorted((ROOT / "tests" / "releases").glob("*/fairlead-*.tgz"))
released = pytest.mark.parametrize("package", [pytest.param(path, id=path.stem) for path in RELEASED])


def test_the_first_chart_is_among_them() -> None:
    assert "fairlead-0.1.0.tgz" in {path.name for path in RELEASED}


@released
def test_todays_chart_takes_all_values_of_a_released_one(package: Path) -> None:
    with helm.Chart.load(package) as old, helm.Chart.load(CHART) as today:
        assert old.version == package.stem.removeprefix("fairlead-")
        today.validate_schema(old.values)


@released
@pytest.mark.parametrize("variation", VARIATIONS)
def test_what_can_never_change_of_an_object_is_what_it_was(package: Path, variation: str) -> None:
    """Selectors, and a StatefulSet's claims: an upgrade that changed them would be refused by the API server."""
    with helm.Chart.load(package) as old:
        made = old.render(
            _known(values(variation), old.values), name=RELEASE, namespace=NAMESPACE, revision=1, is_install=True
        )
    texts = (text for name, text in made.items() if name.endswith(".yaml"))
    before = _fixed([each for text in texts for each in yaml.safe_load_all(text) if each])
    today = _fixed(objects(values(variation)))
    both = before.keys() & today.keys()
    assert len(both) >= 4
    assert {name: today[name] for name in both} == {name: before[name] for name in both}


def _known(given: Json, defaults: Json) -> Json:
    """Return values without those that came later."""
    return {
        key: _known(value, defaults[key]) if isinstance(value, dict) and defaults[key] else value
        for key, value in given.items()
        if key in defaults
    }


def _fixed(found: list[Json]) -> dict[tuple[str, str], Json]:
    return {
        (each["kind"], each["metadata"]["name"]): {
            "selector": each["spec"]["selector"],
            "claims": each["spec"].get("volumeClaimTemplates"),
        }
        for each in found
        if each["kind"] in ("Deployment", "StatefulSet")
    }
