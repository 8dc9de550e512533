"""What the pages on GitOps show is what the chart takes, and what the platform writes."""

import re

import pytest
import yaml

from deployments.domain.phases import Code
from tests.charts.chart import ROOT, Json, objects

PAGES = ROOT / "docs" / "how-to"


def shown(page: str) -> dict[str, Json]:
    """Return the objects of a page, by kind."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE)
    texts = [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]
    return {each["kind"]: each for text in texts for each in yaml.safe_load_all(text)}


def test_the_chart_takes_the_values_of_both_pages() -> None:
    argo_cd = shown("gitops-with-argo-cd.md")["Application"]
    assert argo_cd["metadata"]["name"] == "fairlead"
    helm = argo_cd["spec"]["source"]["helm"]["valuesObject"]
    assert helm["argoCD"] is True
    flux = shown("gitops-with-flux.md")["HelmRelease"]["spec"]["values"]
    for given in (helm, flux):
        assert "web" in {each["metadata"]["labels"].get("app.kubernetes.io/component") for each in objects(given)}
    assert {key: value for key, value in helm.items() if key != "argoCD"} == flux


@pytest.mark.parametrize("page", ["gitops-with-argo-cd.md", "gitops-with-flux.md"])
def test_a_page_says_that_it_was_not_run_under_the_tool(page: str) -> None:
    assert re.search("Rendered and checked as .* documents it, not run under", (PAGES / page).read_text())


def test_the_expression_for_flux_knows_every_pause() -> None:
    (check,) = shown("gitops-with-flux.md")["Kustomization"]["spec"]["healthCheckExprs"]
    listed = re.search(r"in\s+\[([^]]*)\]", check["current"])
    assert listed is not None
    pauses = {code.value for code in Code if code.value.startswith("Paused")} | {Code.AWAITING_APPROVAL.value}
    assert set(re.findall(r"'(\w+)'", listed[1])) == pauses
