"""A cluster's file is applied by whoever can reach the database, as the chart does."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from clusters.models import Cluster

pytestmark = pytest.mark.django_db
FILE = """
name: here
kind: kubernetes
connection: {inCluster: true}
gateway: {url: "https://models.example.com", name: models, namespace: gateways}
runtimeImage: fairlead/serving-runtime:0.1.0
artifacts: {claim: models, root: /var/lib/fairlead/artifacts}
"""


def test_a_file_makes_its_cluster_once_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(FILE)
    call_command("cluster_apply", file)
    call_command("cluster_apply", file)
    assert capsys.readouterr().out.splitlines() == ["cluster here made", "cluster here is as the file says"]
    assert Cluster.objects.get(name="here").document["gateway"]["name"] == "models"
    assert [each.action for each in AuditEntry.objects.all()] == ["cluster.apply"]


def test_a_changed_file_changes_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(FILE)
    call_command("cluster_apply", file)
    file.write_text(FILE.replace(":0.1.0", ":0.2.0"))
    call_command("cluster_apply", file)
    assert Cluster.objects.get(name="here").document["runtimeImage"] == "fairlead/serving-runtime:0.2.0"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "cannot be read: No such file", id="no file"),
        pytest.param("a: [", "is no YAML", id="no YAML"),
        pytest.param(FILE + "gatway: {}\n", "gatway", id="a field that is not known"),
    ],
)
def test_a_file_that_is_wrong_is_told_by_its_fault(content: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CommandError) as refused:
        call_command("cluster_apply", file)
    assert said in str(refused.value)
    assert not Cluster.objects.exists()
